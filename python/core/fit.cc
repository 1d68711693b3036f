// Models from arrays or files, and their predictions.
#include "affpcl/fit/arrays.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/output/model_file.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

// A matrix or a row of numbers in somebody else's memory, read where it lies.
using Array = nb::ndarray<nb::ro, nb::device::cpu>;

template <class T>
void read_column(const Array& a, std::int64_t column, std::vector<double>& to) {
  const T* p = static_cast<const T*>(a.data());
  if (a.ndim() == 2) p += column * a.stride(1);
  for (std::size_t r = 0; r < to.size(); ++r)
    to[r] = static_cast<double>(p[static_cast<std::int64_t>(r) * a.stride(0)]);
}

std::vector<double> column_of(const Array& a, std::int64_t column = 0) {
  std::vector<double> numbers(a.shape(0));
  if (a.dtype() == nb::dtype<double>()) {
    read_column<double>(a, column, numbers);
  } else if (a.dtype() == nb::dtype<float>()) {
    read_column<float>(a, column, numbers);
  } else {
    throw nb::type_error("an array of float64 or float32 is needed");
  }
  return numbers;
}

// The agent of each row: codes into names.
struct Groups {
  nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> codes;
  std::vector<std::string> names;
};

Arrays arrays_of(const Array& X, std::vector<std::string> columns, const Groups& groups) {
  if (X.ndim() != 2) throw BadInput(fmt::format("X has {} axes, not 2", X.ndim()));
  Arrays a{.columns = std::move(columns), .X = {}, .agent_of = {}, .agents = groups.names};
  for (std::size_t c = 0; c < X.shape(1); ++c)
    a.X.push_back(column_of(X, static_cast<std::int64_t>(c)));
  a.agent_of.assign(groups.codes.data(), groups.codes.data() + groups.codes.shape(0));
  return a;
}

FitResult fit_arrays(const Array& X, const std::vector<std::string>& columns, const Array& y,
                     const std::vector<std::string>& labels, const Groups& groups,
                     FitOptions options) {
  Arrays arrays = arrays_of(X, columns, groups);
  ArrayTarget target{.values = column_of(y), .labels = labels};
  return interruptible([&](const std::atomic<bool>& stop) {
    options.stop = &stop;
    return fit(std::move(arrays), std::move(target), options);
  });
}

FitResult fit_files(FitOptions options) {
  return interruptible([&](const std::atomic<bool>& stop) {
    options.stop = &stop;
    return fit(options);
  });
}

// `width` numbers for every row, which write(rows, agent, x, to) fills in.
template <class Write>
Numbers each_row_to(std::size_t width, const Model& model, const Array& X,
                    const Groups& groups, Write write) {
  std::vector<std::string> columns;
  for (const Source& source : model.encoding.sources) columns.push_back(source.name);
  const Arrays arrays = arrays_of(X, columns, groups);
  const std::size_t shape[] = {X.shape(0), width};
  std::vector<double> all(shape[0] * width);
  {
    const nb::gil_scoped_release free;
    each_row(model, arrays,
             [&](const RowPredictor& rows, std::size_t r, const AgentModel* agent,
                 const std::vector<double>& x) { write(rows, agent, x, &all[r * width]); });
  }
  return width == 1 ? to_numpy(std::move(all)) : to_numpy(std::move(all), shape);
}

Numbers predict_numbers(const Model& model, const Array& X, const Groups& groups) {
  return each_row_to(1, model, X, groups,
                     [](const RowPredictor& rows, const AgentModel* agent, const auto& x,
                        double* to) { *to = rows.number(agent, x); });
}

Numbers predict_intervals(const Model& model, const Array& X, const Groups& groups) {
  return each_row_to(3, model, X, groups,
                     [](const RowPredictor& rows, const AgentModel* agent, const auto& x,
                        double* to) {
                       const auto [y, half] = rows.interval(agent, x);
                       to[0] = y, to[1] = y - half, to[2] = y + half;
                     });
}

Numbers predict_classes(const Model& model, const Array& X, const Groups& groups) {
  return each_row_to(model.encoding.classes.size(), model, X, groups,
                     [](const RowPredictor& rows, const AgentModel* agent, const auto& x,
                        double* to) {
                       const std::vector<double> p = rows.probabilities(agent, x);
                       std::copy(p.begin(), p.end(), to);
                     });
}

// [agents][channels][d] of what `of` finds in each model; NaN where it finds nothing.
template <class Of>
Numbers stacked(const Model& model, Of of) {
  const std::size_t d = model.encoding.dim();
  const std::size_t shape[] = {model.agents.size(), model.channels.size(), d};
  std::vector<double> all(shape[0] * shape[1] * d, std::nan(""));
  for (std::size_t i = 0; i < shape[0]; ++i)
    for (std::size_t c = 0; c < shape[1]; ++c) {
      const std::vector<double>& one = of(model.agents[i], c);
      std::copy(one.begin(), one.end(),
                all.begin() + static_cast<std::ptrdiff_t>((i * shape[1] + c) * d));
    }
  return to_numpy(std::move(all), shape);
}

template <class Of>
Numbers shared(const Model& model, Of of) {
  const std::size_t shape[] = {model.channels.size(), model.encoding.dim()};
  std::vector<double> all(shape[0] * shape[1], std::nan(""));
  for (std::size_t c = 0; c < shape[0]; ++c) {
    const std::vector<double>& one = of(model.channels[c]);
    std::copy(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(c * shape[1]));
  }
  return to_numpy(std::move(all), shape);
}

template <class T, class List, class Of>
std::vector<T> each(const List& list, Of of) {
  std::vector<T> all;
  for (const auto& one : list) all.push_back(of(one));
  return all;
}

// A member of FrameOptions, as one of FitOptions.
template <class T>
void frame_option(nb::class_<FitOptions>& c, const char* name, T FrameOptions::*member) {
  c.def_prop_rw(
      name, [member](const FitOptions& o) { return o.frame.*member; },
      [member](FitOptions& o, T value) { o.frame.*member = std::move(value); });
}

void refuse_value(const Param& param, const Value& value) {
  const std::string* const text = std::get_if<std::string>(&value);
  if (text != nullptr && !param.choices.empty() &&
      std::find(param.choices.begin(), param.choices.end(), *text) == param.choices.end())
    throw BadInput(
        fmt::format("{} = '{}' is not known{}", param.name, *text, hint(*text, param.choices)));
  Values({&param, 1}, {{std::string(param.name), value}}, "options");  // its range
}

// An option as its parameter describes it.
void param_option(nb::class_<FitOptions>& c, const Params<FitOptions>::Entry& entry) {
  const std::string name(entry.param.name), doc(entry.param.doc);
  std::visit(
      [&]<class T>(const T&) {
        c.def_prop_rw(
            name.c_str(), [&entry](const FitOptions& o) { return std::get<T>(entry.get(o)); },
            [&entry](FitOptions& o, const T& value) {
              refuse_value(entry.param, value);
              entry.set(o, value);
            },
            doc.c_str());
      },
      entry.param.fallback);
}

void bind_options(nb::module_& m) {
  nb::class_<FitOptions> c(m, "FitOptions", "How to fit; new ones hold the engine's defaults.");
  c.def(nb::init<>());
  for (const Params<FitOptions>::Entry& entry : FitOptions::params().entries())
    param_option(c, entry);
  c.def_prop_rw(
      "method_values", [](const FitOptions& o) { return o.stream.method_values; },
      [](FitOptions& o, std::map<std::string, Value> values) {
        o.stream.method_values = std::move(values);
      });
  frame_option(c, "paths", &FrameOptions::paths);
  frame_option(c, "features", &FrameOptions::features);
  frame_option(c, "exclude", &FrameOptions::exclude);
  frame_option(c, "channels", &FrameOptions::channels);
}

// Means or deviations of all numbers that the columns became.
Numbers scales(const Model& model, std::vector<double> Source::*of) {
  std::vector<double> all;
  for (const Source& s : model.encoding.sources)
    all.insert(all.end(), (s.*of).begin(), (s.*of).end());
  return to_numpy(std::move(all));
}

void bind_arrays(nb::class_<Model>& c) {
  const auto array = [&](const char* name, auto of, const char* doc = "") {
    c.def_prop_ro(name, of, nb::rv_policy::move, doc);
  };
  array("means", [](const Model& m) { return scales(m, &Source::mean); });
  array("deviations", [](const Model& m) { return scales(m, &Source::sd); });
  array(
      "x",
      [](const Model& m) {
        return stacked(
            m, [](const AgentModel& a, std::size_t k) -> auto& { return a.channels[k].x; });
      },
      "[agents][channels][coefficients], of standardised columns.");
  array("se", [](const Model& m) {
    return stacked(
        m, [](const AgentModel& a, std::size_t k) -> auto& { return a.channels[k].se; });
  });
  array("alone", [](const Model& m) {
    return stacked(
        m, [](const AgentModel& a, std::size_t k) -> auto& { return a.independent[k]; });
  });
  array("centre", [](const Model& m) {
    return shared(
        m, [](const ChannelModel& k) -> auto& { return k.centre.x; });
  });
  array("centre_se", [](const Model& m) {
    return shared(
        m, [](const ChannelModel& k) -> auto& { return k.centre.se; });
  });
  array("pooled", [](const Model& m) {
    return shared(
        m, [](const ChannelModel& k) -> auto& { return k.pooled; });
  });
}

void bind_names(nb::class_<Model>& c) {
  c.def_prop_ro("solver", [](const Model& m) { return std::string(to_text(m.solver)); })
      .def_prop_ro("method", [](const Model& m) { return m.method; })
      .def_prop_ro("family", [](const Model& m) { return std::string(to_text(m.encoding.family)); })
      .def_prop_ro("rows", [](const Model& m) { return m.rows; })
      .def_prop_ro("missing",
                   [](const Model& m) { return std::string(name_of(m.encoding.missing)); })
      .def_prop_ro("target", [](const Model& m) { return m.encoding.target; })
      .def_prop_ro("agent_column", [](const Model& m) { return m.encoding.agent_column; })
      .def_prop_ro("classes", [](const Model& m) { return m.encoding.classes; })
      .def_prop_ro("coefficients", [](const Model& m) { return m.encoding.names(); })
      .def_prop_ro("sources",
                   [](const Model& m) {
                     return each<std::string>(m.encoding.sources, [](auto& s) { return s.name; });
                   })
      .def_prop_ro(
          "texts",
          [](const Model& m) {
            return each<bool>(m.encoding.sources, [](auto& s) { return !s.levels.empty(); });
          },
          "Which of the sources are string columns.")
      .def_prop_ro("agents",
                   [](const Model& m) {
                     return each<std::string>(m.agents, [](auto& a) { return a.name; });
                   })
      .def_prop_ro(
          "given",
          [](const Model& m) {
            return each<std::string>(m.agents, [](auto& a) { return to_text(a.kind); });
          },
          "Each agent's chosen model.");
}

void bind_model(nb::module_& m) {
  nb::class_<Groups>(m, "Groups", "Whose row each is: codes into names.")
      .def(nb::init<decltype(Groups::codes), std::vector<std::string>>(), nb::arg("codes"),
           nb::arg("names"));
  nb::class_<Model> c(m, "Model", "One linear model per agent, as model.json holds it.");
  bind_names(c);
  bind_arrays(c);
  const auto parse = [](const std::string& text) { return parse_model(text, "the model"); };
  c.def_static("read", &read_model, nb::arg("path"), "From model.json, or the folder of one.")
      .def_static("parse", parse, nb::arg("text"))
      .def("json", &model_json)
      .def("__getstate__", &model_json)
      .def("__setstate__",
           [parse](Model& model, const std::string& text) { new (&model) Model(parse(text)); })
      .def(
          "write",
          [](const Model& model, const std::string& path) { write_file(path, model_json(model)); },
          nb::arg("path"))
      .def("predict", &predict_numbers, nb::arg("X"), nb::arg("groups"))
      .def("predict_interval", &predict_intervals, nb::arg("X"), nb::arg("groups"),
           "Columns: prediction, and the ends of its 90 % interval.")
      .def("predict_proba", &predict_classes, nb::arg("X"), nb::arg("groups"))
      .def(
          "predict_files",
          [](const Model& model, const std::vector<std::string>& files) {
            return predict(model, files).csv;
          },
          nb::arg("files"), nb::call_guard<nb::gil_scoped_release>(),
          "The files' rows with their predictions, as CSV.");
}

}  // namespace

void bind_fit(nb::module_& m) {
  bind_options(m);
  bind_model(m);
  nb::class_<FitResult>(m, "FitResult", "A model, and what learning together gained each agent.")
      .def_prop_ro("model", [](const FitResult& r) { return r.model; })
      .def_prop_ro("notes", [](const FitResult& r) {
            return spell_options(r.notes, OptionStyle::kPython);
          })
      .def_ro("scored", &FitResult::scored)
      .def_ro("seconds", &FitResult::seconds)
      .def_ro("threads", &FitResult::threads)
      .def("json", &fit_summary_json, "summary.json, as the command line writes it.");
  m.def("fit_arrays", &fit_arrays, nb::arg("X"), nb::arg("columns"), nb::arg("y"),
        nb::arg("labels"), nb::arg("groups"), nb::arg("options"),
        "Fits arrays; with labels y holds codes into them. The options name target and agent.");
  m.def("fit_files", &fit_files, nb::arg("options"), "Fits the files that the options name.");
}

}  // namespace affpcl::python
