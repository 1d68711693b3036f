// The engine's memory as NumPy arrays, for functions written in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
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

// Whether a call is under way. What a function was given asks before it reads the engine's memory.
class Live {
 public:
  void end() const { *live_ = false; }
  void require() const {
    if (!*live_) throw nb::value_error("blocks and fields are for the call they were given to");
  }

 private:
  std::shared_ptr<bool> live_ = std::make_shared<bool>(true);
};

// Arrays of the engine's memory, for the call of a function written in Python. Each has memory of
// its own: it holds a copy, and what may be changed is written back when the call ends. So an array
// that outlives its call, because it was kept or because a traceback holds it, is still an array.
// Arrays that nothing holds any more serve again.
class Views {
 public:
  // One call of a function. Arrays made meanwhile are its own; if it fails, nothing is written
  // back.
  class Call {
   public:
    explicit Call(Views& views)
        : views_(views), outer_(views.first_), outer_live_(std::exchange(views.live_, Live())) {
      views.first_ = views.used_.size();
    }
    ~Call() {
      views_.live_.end();
      views_.live_ = outer_live_;
      const std::size_t first = views_.first_;
      for (std::size_t i = first; i < views_.used_.size(); ++i)
        views_.give_back(std::move(views_.used_[i].array));
      views_.used_.erase(views_.used_.begin() + static_cast<std::ptrdiff_t>(first),
                         views_.used_.end());
      views_.first_ = outer_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The function has returned: the engine takes what it wrote. Refuses if it kept an array.
    template <class Who>
    void end(Who who) {
      bool kept = false;
      for (std::size_t i = views_.first_; i < views_.used_.size(); ++i) {
        views_.used_[i].store();
        kept |= views_.used_[i].array.held();
      }
      if (kept)
        throw nb::value_error(
            (who() + " kept an array of its call; keep a copy of it instead").c_str());
    }

   private:
    Views& views_;
    std::size_t outer_;
    Live outer_live_;
  };

  Views() = default;
  ~Views() {
    const nb::gil_scoped_acquire gil;
    free_.clear();
  }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  const Live& live() const { return live_; }  // of the present call

  nb::object read(In in, int count) {
    return view(const_cast<double*>(in.p), {in.rows, in.width, in.width == 1 ? 1 : count, false});
  }
  nb::object write(Out out, int count) { return view(out.p, {out.rows, kLanes, count, true}); }
  nb::object read(const double* column, int rows) {
    return view(const_cast<double*>(column), {rows, 1, 1, false});
  }
  nb::object write(double* column, int rows) { return view(column, {rows, 1, 1, true}); }

  // `value`, as NumPy broadcasts it, into rows of the engine. False: a Python error is set.
  bool put(nb::handle value, Out out, int count) {
    Array array = take({out.rows, kLanes, count, true});
    if (PyObject_SetItem(array.object.ptr(), Py_Ellipsis, value.ptr()) != 0) return false;
    array.form.copy(array.data, out.p);
    give_back(std::move(array));
    return true;
  }

  // Between these the engine may work on rows of which the function has an array.
  void store(Out out) {
    if (Used* used = find(out.p)) used->store();
  }
  void load(Out out) {
    if (Used* used = find(out.p)) used->load();
  }

 private:
  struct Form {
    int rows, width, columns;  // width: numbers from one row to the next
    bool writable;
    auto operator<=>(const Form&) const = default;
    void copy(const double* from, double* to) const {
      if (columns == width) {
        std::copy_n(from, static_cast<std::ptrdiff_t>(rows) * width, to);
        return;
      }
      for (std::ptrdiff_t r = 0; r < rows; ++r)
        std::copy_n(from + r * width, columns, to + r * width);
    }
  };
  struct Array {
    Form form;
    nb::object object;
    double* data;  // its own
    bool held() const { return Py_REFCNT(object.ptr()) > 1; }
  };
  struct Used {
    Array array;
    double* place;  // of the engine
    void load() const { array.form.copy(place, array.data); }
    void store() const {
      if (array.form.writable) array.form.copy(array.data, place);
    }
  };

  Used* find(const double* place) {
    for (std::size_t i = first_; i < used_.size(); ++i)
      if (used_[i].place == place) return &used_[i];
    return nullptr;
  }

  // The array of a place; asked for again in the same call, the same one.
  nb::object view(double* place, const Form& form) {
    for (std::size_t i = first_; i < used_.size(); ++i)
      if (used_[i].place == place && used_[i].array.form == form) return used_[i].array.object;
    used_.push_back({take(form), place});
    used_.back().load();
    return used_.back().array.object;
  }

  Array take(const Form& form) {
    std::vector<Array>& free = free_[form];
    if (free.empty()) return make(form);
    Array array = std::move(free.back());
    free.pop_back();
    return array;
  }
  void give_back(Array array) {
    if (!array.held()) free_[array.form].push_back(std::move(array));
  }

  static Array make(const Form& form) {
    auto* const memory =
        new Buffer(static_cast<std::size_t>(form.rows) * static_cast<std::size_t>(form.width));
    const nb::capsule owner(memory, [](void* p) noexcept { delete static_cast<Buffer*>(p); });
    const std::size_t shape[] = {static_cast<std::size_t>(form.rows),
                                 static_cast<std::size_t>(form.columns)};
    const std::int64_t strides[] = {form.width, 1};
    nb::object object =
        form.writable
            ? nb::cast(nb::ndarray<nb::numpy, double>(memory->data(), 2, shape, owner, strides))
            : nb::cast(
                  nb::ndarray<nb::numpy, const double>(memory->data(), 2, shape, owner, strides));
    return {form, std::move(object), memory->data()};
  }

  std::map<Form, std::vector<Array>> free_;
  std::vector<Used> used_;
  Live live_;
  std::size_t first_ = 0;  // of those used, the first of the present call's
};

}  // namespace affpcl::python
