// The engine's memory as NumPy arrays, for functions written in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "affpcl/math/blocks.h"

namespace affpcl::python {

namespace nb = nanobind;

// One such function at a time. Who waits for its turn does not hold the GIL meanwhile.
class Turn {
 public:
  Turn() : lock_(take()) {}

 private:
  static std::unique_lock<std::recursive_mutex> take() {
    static std::recursive_mutex mutex;
    std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) {
      const nb::gil_scoped_release free;
      lock.lock();
    }
    return lock;
  }
  nb::gil_scoped_acquire gil_;
  std::unique_lock<std::recursive_mutex> lock_;
};

// A Python object in the hands of the engine, which lets go of it without the GIL.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  ~Held() {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const nb::object& operator*() const { return object_; }

 private:
  nb::object object_;
};

// Views of places, each made once: the engine calls with the same places again and again. They
// point into memory of the engine, so a function must not keep one; check() finds out after the
// call.
class Views {
 public:
  Views() = default;
  ~Views() {
    const nb::gil_scoped_acquire gil;
    made_.clear();
  }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  nb::object read(In in, int count) { return make<const double>(in.p, in.rows, in.width, count); }
  nb::object write(Out out, int count) { return make<double>(out.p, out.rows, kLanes, count); }
  nb::object read(const double* column, int rows) { return make<const double>(column, rows, 1, 1); }
  nb::object write(double* column, int rows) { return make<double>(column, rows, 1, 1); }

  std::size_t used() const { return used_.size(); }
  // Of those used since there were `before`.
  void check(std::size_t before, const std::string& who) {
    bool kept = false;
    for (std::size_t i = before; i < used_.size(); ++i) kept |= Py_REFCNT(used_[i]) > 1;
    used_.resize(before);
    if (kept)
      throw nb::value_error(
          (who + " kept an array of the engine's memory; keep a copy of it instead").c_str());
  }
  void forget(std::size_t before) { used_.resize(before); }

 private:
  using Place = std::tuple<const double*, int, int, int, bool>;

  template <class T>
  nb::object make(T* p, int rows, int width, int count) {
    const bool writable = !std::is_const_v<T>;
    const int columns = width == 1 ? 1 : count;
    nb::object& view = made_[{p, rows, width, columns, writable}];
    if (!view.is_valid()) {
      const std::size_t shape[] = {static_cast<std::size_t>(rows),
                                   static_cast<std::size_t>(columns)};
      const std::int64_t strides[] = {width, 1};
      view = nb::cast(nb::ndarray<nb::numpy, T>(p, 2, shape, nb::none(), strides),
                      nb::rv_policy::reference);
    }
    used_.push_back(view.ptr());
    return view;
  }

  std::map<Place, nb::object> made_;
  std::vector<PyObject*> used_;
};

}  // namespace affpcl::python
