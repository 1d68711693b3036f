// What the parts of the extension module share: errors and Ctrl-C, and arrays of NumPy's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/study/spec.h"

namespace affpcl::python {

namespace nb = nanobind;

void bind_catalogue(nb::module_& m);
void bind_extend(nb::module_& m);
void bind_federation(nb::module_& m);
void bind_fit(nb::module_& m);
void bind_output(nb::module_& m);
void bind_study(nb::module_& m);

bool written_in_python(const Spec& spec);  // its problem, or one of its methods

// work(stop) on a thread of its own while this one, without the GIL, looks for Ctrl-C and calls
// meanwhile(), which may raise and so stops the work.
template <class Work, class Meanwhile>
auto interruptible(Work work, Meanwhile meanwhile) {
  std::atomic<bool> stop = false;
  std::optional<nb::python_error> error;
  auto result = std::async(std::launch::async, [&] { return work(stop); });
  for (;;) {
    {
      const nb::gil_scoped_release free;
      if (result.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
    }
    if (error) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      meanwhile();
    } catch (const nb::python_error& raised) {
      error.emplace(raised);
      stop = true;
    }
  }
  if (error) throw nb::python_error(*error);
  return result.get();
}

template <class Work>
auto interruptible(Work work) {
  return interruptible(std::move(work), [] {});
}

using Numbers = nb::ndarray<nb::numpy, double>;

// The numbers as an array that owns them; nothing is copied.
template <class T, std::size_t N>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T> numbers, const std::size_t (&shape)[N]) {
  auto* const kept = new std::vector<T>(std::move(numbers));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {kept->data(), N, shape, owner};
}

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T> numbers) {
  const std::size_t shape[] = {numbers.size()};
  return to_numpy(std::move(numbers), shape);
}

}  // namespace affpcl::python
