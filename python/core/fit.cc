// Models from arrays or files, and their predictions.
#include "affpcl/fit/fit.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cmath>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/fit/predict.h"
#include "affpcl/output/model_file.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

constexpr const char* kSource = "arrays";  // where complaints expect a file

// The value of an enumeration that is called `name`.
template <class E, std::size_t N>
E named(const char* key, const std::string& name, const std::array<std::string_view, N>& names) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<E>(i);
  throw BadInput(fmt::format("{} = '{}' is not known{}", key, name, hint(name, names)));
}

// By value, as the enumerations list them.
constexpr std::array<std::string_view, 3> kTask = {"auto", "regress", "classify"};
constexpr std::array<std::string_view, 2> kSolver = {"exact", "stream"};

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

// Whose row each is: numbers into `names`.
struct Groups {
  nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> codes;
  std::vector<std::string> names;

  std::int32_t at(std::size_t row) const {
    const std::int32_t code = codes.data()[row];
    if (code < 0 || static_cast<std::size_t>(code) >= names.size())
      throw BadInput(fmt::format("groups holds the code {} of {} names", code, names.size()));
    return code;
  }
};

void refuse_lengths(const Array& X, std::size_t columns, std::size_t y, std::size_t groups) {
  if (X.ndim() != 2) throw BadInput(fmt::format("X has {} axes, not 2", X.ndim()));
  if (X.shape(1) != columns)
    throw BadInput(
        fmt::format("X has {} columns, but {} are named or fitted", X.shape(1), columns));
  for (const auto& [what, length] : {std::pair{"y", y}, std::pair{"groups", groups}})
    if (length != X.shape(0))
      throw BadInput(fmt::format("X has {} rows, but {} has {}", X.shape(0), what, length));
}

Column number_column(const std::string& name, std::vector<double> numbers) {
  Column c;
  c.name = name;
  for (double v : numbers) c.missing += std::isnan(v);
  c.numbers = std::move(numbers);
  return c;
}

Column text_column(const std::string& name, std::vector<std::int32_t> codes,
                   const std::vector<std::string>& levels) {
  Column c;
  c.name = name;
  c.type = Column::Type::kText;
  c.codes = std::move(codes);
  c.levels = levels;
  return c;
}

// The arrays as the table that a file with these columns would be.
Tables tables_of(const Array& X, const std::vector<std::string>& names, const Array& y,
                 const std::vector<std::string>& labels, const Groups& groups,
                 const FrameOptions& o) {
  Tables t;
  t.rows = X.shape(0);
  t.first = {0};
  t.parts.resize(1);
  t.parts[0].path = kSource;
  t.parts[0].rows = static_cast<std::int64_t>(t.rows);
  for (std::size_t c = 0; c < names.size(); ++c)
    t.columns.push_back(number_column(names[c], column_of(X, static_cast<std::int64_t>(c))));
  std::vector<double> numbers = column_of(y);
  if (labels.empty()) {
    t.columns.push_back(number_column(o.target, std::move(numbers)));
  } else {
    t.columns.push_back(text_column(o.target, {numbers.begin(), numbers.end()}, labels));
  }
  std::vector<std::int32_t> codes(t.rows);
  for (std::size_t r = 0; r < t.rows; ++r) codes[r] = groups.at(r);
  t.columns.push_back(text_column(o.agent, std::move(codes), groups.names));
  return t;
}

void refuse_names(const std::vector<std::string>& columns, const FrameOptions& o) {
  std::set<std::string> seen = {o.target};
  if (!seen.insert(o.agent).second)
    throw BadInput(fmt::format("target and groups are both called '{}'", o.agent));
  for (const std::string& name : columns)
    if (!seen.insert(name).second)
      throw BadInput(fmt::format(
          "two columns (or a column and the target or the groups) are called '{}'", name));
}

FitResult fit_arrays(const Array& X, const std::vector<std::string>& columns, const Array& y,
                     const std::vector<std::string>& labels, const Groups& groups,
                     FitOptions options) {
  const FrameOptions& frame = options.frame;
  refuse_lengths(X, columns.size(), y.shape(0), groups.codes.shape(0));
  refuse_names(columns, frame);
  Encoding encoding;
  encoding.missing = frame.missing.rest;
  encoding.reading = frame.reading;
  encoding.target = frame.target;
  encoding.agent_column = frame.agent;
  return interruptible([&](const std::atomic<bool>& stop) {
    options.stop = &stop;
    return fit(tables_of(X, columns, y, labels, groups, frame), encoding, options);
  });
}

FitResult fit_files(FitOptions options) {
  return interruptible([&](const std::atomic<bool>& stop) {
    options.stop = &stop;
    return fit(options);
  });
}

// One row of X after another, standardised as the model was fitted, and its agent.
template <class Use>
void each_row(const Model& model, const Array& X, const Groups& groups, Use use) {
  const std::vector<Source>& sources = model.encoding.sources;
  refuse_lengths(X, sources.size(), X.shape(0), groups.codes.shape(0));
  for (const Source& s : sources)
    if (!s.levels.empty())
      throw BadInput(fmt::format(
          "the model's column '{}' holds texts, which arrays have not; predict files with it",
          s.name));
  std::vector<std::vector<double>> numbers;
  for (std::size_t c = 0; c < sources.size(); ++c)
    numbers.push_back(column_of(X, static_cast<std::int64_t>(c)));
  const RowPredictor rows(model);
  std::vector<const AgentModel*> agents;
  for (const std::string& name : groups.names) agents.push_back(rows.agent(name));
  std::vector<double> row(sources.size()), x;
  for (std::size_t r = 0; r < X.shape(0); ++r) {
    for (std::size_t c = 0; c < sources.size(); ++c) row[c] = numbers[c][r];
    rows.encode(row, x, [&](const Source& source) {
      throw BadInput(fmt::format(
          "row {} of X lacks column '{}', and the model was fitted with missing='error'", r,
          source.name));
    });
    use(rows, r, agents[static_cast<std::size_t>(groups.at(r))], x);
  }
}

Numbers predict_numbers(const Model& model, const Array& X, const Groups& groups) {
  std::vector<double> y(X.shape(0));
  {
    const nb::gil_scoped_release free;
    each_row(model, X, groups, [&](const auto& rows, std::size_t r, auto* agent, const auto& x) {
      y[r] = rows.number(agent, x);
    });
  }
  return to_numpy(std::move(y));
}

Numbers predict_intervals(const Model& model, const Array& X, const Groups& groups) {
  const std::size_t shape[] = {X.shape(0), 3};
  std::vector<double> all(shape[0] * 3);
  {
    const nb::gil_scoped_release free;
    each_row(model, X, groups, [&](const auto& rows, std::size_t r, auto* agent, const auto& x) {
      const auto [y, half] = rows.interval(agent, x);
      all[3 * r] = y, all[3 * r + 1] = y - half, all[3 * r + 2] = y + half;
    });
  }
  return to_numpy(std::move(all), shape);
}

Numbers predict_classes(const Model& model, const Array& X, const Groups& groups) {
  const std::size_t shape[] = {X.shape(0), model.encoding.classes.size()};
  std::vector<double> all(shape[0] * shape[1]);
  {
    const nb::gil_scoped_release free;
    each_row(model, X, groups, [&](const auto& rows, std::size_t r, auto* agent, const auto& x) {
      const std::vector<double> p = rows.probabilities(agent, x);
      std::copy(p.begin(), p.end(), all.begin() + static_cast<std::ptrdiff_t>(r * shape[1]));
    });
  }
  return to_numpy(std::move(all), shape);
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

// An enumeration, by its names; at(options) is where its value is.
template <class At, std::size_t N>
void named_option(nb::class_<FitOptions>& c, const char* name,
                  const std::array<std::string_view, N>& names, At at) {
  c.def_prop_rw(
      name,
      [at, &names](FitOptions& o) { return std::string(names[static_cast<std::size_t>(at(o))]); },
      [at, &names, name](FitOptions& o, const std::string& text) {
        at(o) = named<std::remove_reference_t<decltype(at(o))>>(name, text, names);
      });
}

template <class T>
void table_option(nb::class_<FitOptions>& c, const Params<TableChoices>::Entry& entry) {
  const std::string name(entry.param.name);
  c.def_prop_rw(
      name.c_str(),
      [entry](const FitOptions& o) { return std::get<T>(entry.get(TableChoices::of(o.frame))); },
      [entry, name](FitOptions& o, T value) {
        const Values checked(std::span(&entry.param, 1), {{name, Value(std::move(value))}}, "fit");
        TableChoices choices = TableChoices::of(o.frame);
        entry.set(choices, checked.all().find(name)->second);
        choices.put(o.frame);
      });
}

// What the command line says about reading and columns, by the same names.
void table_options(nb::class_<FitOptions>& c) {
  for (const auto& entry : TableChoices::params().entries())
    std::holds_alternative<std::string>(entry.param.fallback) ? table_option<std::string>(c, entry)
                                                              : table_option<std::int64_t>(c, entry);
}

void bind_options(nb::module_& m) {
  nb::class_<FitOptions> c(m, "FitOptions", "How to fit; new ones hold the engine's defaults.");
  c.def(nb::init<>())
      .def_rw("threads", &FitOptions::threads)
      .def_rw("score", &FitOptions::score)
      .def_rw("method", &FitOptions::method)
      .def_rw("method_values", &FitOptions::method_values);
  named_option(c, "solver", kSolver, [](FitOptions& o) -> Solver& { return o.solver; });
  table_options(c);
  named_option(c, "task", kTask, [](FitOptions& o) -> Task& { return o.frame.task; });
  frame_option(c, "seed", &FrameOptions::seed);
  frame_option(c, "paths", &FrameOptions::paths);
  frame_option(c, "target", &FrameOptions::target);
  frame_option(c, "agent", &FrameOptions::agent);
  frame_option(c, "features", &FrameOptions::features);
  frame_option(c, "exclude", &FrameOptions::exclude);
  frame_option(c, "channels", &FrameOptions::channels);
  frame_option(c, "weights", &FrameOptions::weights);
  frame_option(c, "time", &FrameOptions::time);
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
        m, [](const AgentModel& a, std::size_t k) -> auto& { return a.alone[k]; });
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
      .def_prop_ro("rows", [](const Model& m) { return m.rows; })
      .def_prop_ro("missing",
                   [](const Model& m) {
                     return std::string(name_of(m.encoding.missing));
                   })
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
          "Which of the sources hold texts.")
      .def_prop_ro("agents",
                   [](const Model& m) {
                     return each<std::string>(m.agents, [](auto& a) { return a.name; });
                   })
      .def_prop_ro(
          "given",
          [](const Model& m) {
            return each<std::string>(m.agents, [](auto& a) { return to_text(a.kind); });
          },
          "Which model each agent was given.");
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
