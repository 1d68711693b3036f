// A method's memory by name, as its functions written in Python see it: block.agent["x"].
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/math/blocks.h"
#include "python/core/views.h"

namespace affpcl::python {

// To assign to a field is to write into it, as into its array.
class Fields {
 public:
  using Names = std::vector<Layout::Named>;
  // Of a block's agents.
  Fields(const Names& names, Agents agents, Views& views)
      : names_(&names), agents_(agents), views_(&views), live_(views.live()) {}
  // Of what all agents share, a column each. `fixed` says why it cannot be changed; nullptr: it
  // can.
  Fields(const Names& names, double* column, const char* fixed, Views& views)
      : names_(&names), column_(column), fixed_(fixed), views_(&views), live_(views.live()) {}

  nb::object get(const std::string& name) const {
    const Field f = field(name);
    if (column_ == nullptr) return views_->write(agents_[f], agents_.lanes.count);
    if (fixed_ == nullptr) return views_->write(column_ + f.at, f.rows);
    return views_->read(column_ + f.at, f.rows);
  }
  void set(const std::string& name, nb::handle value) const {
    const nb::object array = get(name);
    if (fixed_ != nullptr) throw nb::type_error(fixed_);
    if (PyObject_SetItem(array.ptr(), Py_Ellipsis, value.ptr()) != 0) throw nb::python_error();
  }
  std::vector<std::string> keys() const {
    live_.require();
    std::vector<std::string> all;
    for (const Layout::Named& f : *names_) all.push_back(f.name);
    return all;
  }
  std::size_t size() const { return keys().size(); }
  bool contains(const std::string& name) const {
    const std::vector<std::string> all = keys();
    return std::find(all.begin(), all.end(), name) != all.end();
  }
  nb::list values() const {
    nb::list all;
    for (const std::string& name : keys()) all.append(get(name));
    return all;
  }
  nb::list items() const {
    nb::list all;
    for (const std::string& name : keys()) all.append(nb::make_tuple(name, get(name)));
    return all;
  }

 private:
  Field field(const std::string& name) const {
    live_.require();
    for (const Layout::Named& f : *names_)
      if (f.name == name) return f.field;
    std::vector<std::string_view> known;
    for (const Layout::Named& f : *names_) known.push_back(f.name);
    throw nb::key_error(
        fmt::format("no field '{}' was declared{}", name, hint(name, known)).c_str());
  }

  const Names* names_;
  Agents agents_;
  double* column_ = nullptr;
  const char* fixed_ = nullptr;
  Views* views_;
  Live live_;
};

}  // namespace affpcl::python
