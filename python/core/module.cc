// The extension module affpcl._core: the engine as Python sees it. What is pleasant to use is made
// of it in python/affpcl/*.py.
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "affpcl/base/error.h"
#include "affpcl/density/ratio.h"
#include "affpcl/math/kernels.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/study/studies.h"
#include "affpcl/version.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

std::string text(std::string_view t) { return std::string(t); }

nb::list params(std::span<const Param> table) {
  nb::list all;
  for (const Param& p : table) {
    nb::dict one;
    one["name"] = text(p.name);
    one["doc"] = text(p.doc);
    one["default"] = nb::cast(p.fallback);
    one["choices"] = std::vector<std::string>(p.choices.begin(), p.choices.end());
    all.append(one);
  }
  return all;
}

template <class Kinds>
nb::dict kinds(const Kinds& table) {
  nb::dict all;
  for (const auto& k : table) {
    nb::dict one;
    one["doc"] = text(k.doc);
    if constexpr (requires { k.params; }) one["params"] = params(k.params);
    all[text(k.name).c_str()] = one;
  }
  return all;
}

nb::dict catalogue() {
  nb::dict all, studies;
  for (const EmbeddedStudy& s : embedded_studies())
    studies[text(s.name).c_str()] = read_study(text(s.spec), text(s.name)).title;
  all["problems"] = kinds(problem_kinds());
  all["methods"] = kinds(method_kinds());
  all["ratios"] = kinds(ratio_kinds());
  all["studies"] = studies;
  all["run"] = params(run_params());
  all["method"] = params(method_params());
  all["compress"] = params(compression_params());
  return all;
}

}  // namespace

void bind_catalogue(nb::module_& m) {
  m.def(
      "catalogue", &catalogue,
      "Problems, methods, density ratios, studies and the keys of a spec, with their defaults.\n\n"
      ">>> import affpcl\n>>> 'affpcl' in affpcl.catalogue()['methods']\nTrue");
  m.def(
      "embedded_spec", [](const std::string& name) { return text(embedded_study(name).spec); },
      nb::arg("name"), "The spec.toml of a study that comes with affpcl.");
  m.def("version", [] { return text(kVersion); });
  m.def(
      "instruction_set", [] { return text(instruction_set()); },
      "The instruction set that kernels use on this machine.\n\n"
      ">>> import affpcl\n>>> isinstance(affpcl.instruction_set(), str)\nTrue");
}

}  // namespace affpcl::python

NB_MODULE(_core, m) {
  using namespace affpcl;
  namespace nb = nanobind;
  m.doc() = "The engine of affpcl.";
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const BadInput& e) {
      PyErr_SetString(PyExc_ValueError, e.sentence(OptionStyle::kPython).c_str());
    } catch (const Failure& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  });
  python::bind_catalogue(m);
  python::bind_study(m);
  python::bind_federation(m);
  python::bind_fit(m);
  python::bind_output(m);
  python::bind_extend(m);
}
