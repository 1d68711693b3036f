// Models from arrays or files, and their predictions.
#include "affpcl/fit/arrays.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/output/federation_file.h"
#include "affpcl/output/fit_headline.h"
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

// What rows may have beside X and their group. An offset is [rows], or [rows][classes].
using Maybe = std::optional<Array>;
void add_offset(const Maybe& offset, Arrays& a) {
  if (!offset) return;
  const std::size_t columns = offset->ndim() == 2 ? offset->shape(1) : 1;
  for (std::size_t c = 0; c < columns; ++c)
    a.offset.push_back(column_of(*offset, static_cast<std::int64_t>(c)));
}

// work(options) with Ctrl-C and, where it is wanted, progress: a share of the work, from 0 to 1.
template <class Work>
FitResult with_progress(FitOptions options, nb::object progress, Work work) {
  const auto share = std::make_shared<std::atomic<double>>(0.0);
  options.progress = [share](double done) { *share = done; };
  double told = 0;
  return interruptible(
      [&](const std::atomic<bool>& stop) {
        options.stop = &stop;
        return work(options);
      },
      [&] {
        if (progress.is_none() || *share == told) return;
        told = *share;
        progress(told);
      });
}

FitResult fit_arrays(const Array& X, const std::vector<std::string>& columns, const Array& y,
                     const std::vector<std::string>& labels, const Groups& groups,
                     FitOptions options, const Maybe& row_weight, const Maybe& trials,
                     const Maybe& offset, const std::optional<Groups>& folds, nb::object progress) {
  Arrays arrays = arrays_of(X, columns, groups);
  if (row_weight) arrays.row_weight = column_of(*row_weight);
  if (trials) arrays.trials = column_of(*trials);
  add_offset(offset, arrays);
  if (folds) {
    arrays.fold_of.assign(folds->codes.data(), folds->codes.data() + folds->codes.shape(0));
    arrays.folds = folds->names;
  }
  ArrayTarget target{.values = column_of(y), .labels = labels};
  return with_progress(std::move(options), std::move(progress), [&](const FitOptions& o) {
    return fit(std::move(arrays), std::move(target), o);
  });
}

FitResult fit_files(FitOptions options, nb::object progress) {
  return with_progress(std::move(options), std::move(progress),
                       [&](const FitOptions& o) { return fit(o); });
}

FitResult fit_table(const DataTable& table, FitOptions options, nb::object progress) {
  return with_progress(std::move(options), std::move(progress),
                       [&](const FitOptions& o) { return fit(table, o); });
}

// `width` numbers for every row, which write(rows, row, to) fills in; each(use) calls use for all.
template <class Each, class Write>
Numbers rows_to(std::size_t count, std::size_t width, Each each, Write write) {
  const std::size_t shape[] = {count, width};
  std::vector<double> all(count * width);
  {
    const nb::gil_scoped_release free;
    each([&](const RowPredictor& rows, const EncodedRow& at) {
      write(rows, at, &all[at.row * width]);
    });
  }
  return width == 1 ? to_numpy(std::move(all)) : to_numpy(std::move(all), shape);
}

template <class Write>
Numbers each_row_to(std::size_t width, const Model& model, const Array& X, const Groups& groups,
                    const Maybe& offset, Write write, double level = kConfidence) {
  std::vector<std::string> columns;
  for (const Source& source : model.encoding.sources) columns.push_back(source.name);
  Arrays arrays = arrays_of(X, columns, groups);
  add_offset(offset, arrays);
  return rows_to(
      X.shape(0), width, [&](UseRow use) { each_row(model, std::move(arrays), use, level); },
      write);
}

void write_number(const RowPredictor& rows, const EncodedRow& at, double* to) {
  *to = rows.number(at.agent, at.x, at.offsets, at.level);
}
void write_interval(const RowPredictor& rows, const EncodedRow& at, double* to) {
  const auto [y, half] = rows.interval(at.agent, at.x, at.offsets, at.level);
  to[0] = y, to[1] = std::isnan(half) ? half : std::max(y - half, rows.least()), to[2] = y + half;
}
void write_classes(const RowPredictor& rows, const EncodedRow& at, double* to) {
  const std::vector<double> p = rows.probabilities(at.agent, at.x, at.offsets);
  std::copy(p.begin(), p.end(), to);
}

Numbers predict_numbers(const Model& model, const Array& X, const Groups& groups,
                        const Maybe& offset) {
  return each_row_to(1, model, X, groups, offset, write_number);
}

Numbers predict_intervals(const Model& model, const Array& X, const Groups& groups,
                          const Maybe& offset, double level) {
  return each_row_to(3, model, X, groups, offset, write_interval, level);
}

Numbers predict_classes(const Model& model, const Array& X, const Groups& groups,
                        const Maybe& offset) {
  return each_row_to(model.encoding.classes.size(), model, X, groups, offset, write_classes);
}

// Of numbers the prediction and the ends of its interval, of classes their probabilities.
Numbers predict_table(const Model& model, const DataTable& table, double level) {
  const std::size_t classes = model.encoding.classes.size();
  const auto each = [&](UseRow use) { each_row(model, table, use, level); };
  const auto rows = static_cast<std::size_t>(table.rows);
  return classes == 0 ? rows_to(rows, 3, each, write_interval)
                      : rows_to(rows, classes, each, write_classes);
}

void add_rows(DataTable& table, std::size_t rows, const std::string& name) {
  if (!table.columns.empty() && static_cast<std::size_t>(table.rows) != rows)
    throw BadInput(
        fmt::format("column '{}' has {} rows, and the others have {}", name, rows, table.rows));
  table.rows = static_cast<std::int64_t>(rows);
}

void add_numbers(DataTable& table, const std::string& name, const Array& numbers) {
  add_rows(table, numbers.shape(0), name);
  Column c{.name = name};
  c.numbers = column_of(numbers);
  for (const double v : c.numbers) c.missing += v != v;
  table.columns.push_back(std::move(c));
}

void add_texts(DataTable& table, const std::string& name, const Groups& texts) {
  add_rows(table, texts.codes.shape(0), name);
  Column c{.name = name, .type = Column::Type::kText};
  c.codes.assign(texts.codes.data(), texts.codes.data() + texts.codes.shape(0));
  c.levels = texts.names;
  for (const std::int32_t code : c.codes) {
    c.missing += code < 0;
    if (code >= 0 && static_cast<std::size_t>(code) >= c.levels.size())
      throw BadInput(
          fmt::format("column '{}' holds the code {} of {} texts", name, code, c.levels.size()));
  }
  table.columns.push_back(std::move(c));
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
  c.def(
      "set_td",
      [](FitOptions& o, std::map<std::string, Value> values) {
        o.td = TdLog::params().read(Values(TdLog::params().table(), std::move(values), "options"));
        o.solver = SolverKind::kStream;
      },
      nb::arg("values"), "Values of states from a log of transitions instead of a table.");
  c.def(
      "set_centre",
      [](FitOptions& o, const Model& centre) { o.centre = std::make_shared<const Model>(centre); },
      nb::arg("centre"), "A centre that these agents took no part in, which they join.");
  frame_option(c, "paths", &FrameOptions::paths);
  frame_option(c, "features", &FrameOptions::features);
  frame_option(c, "exclude", &FrameOptions::exclude);
  frame_option(c, "channels", &FrameOptions::channels);
  frame_option(c, "common", &FrameOptions::common);
  frame_option(c, "beside", &FrameOptions::beside);
  frame_option(c, "test", &FrameOptions::test);
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
      .def_prop_ro(
          "estimate",
          [](const Model& m) {
            return m.solver == SolverKind::kExact ? std::string(m.estimate()) : std::string();
          },
          "whether the variances maximise the likelihood (ml) or the restricted one (reml); of a "
          "stream: empty")
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
  nb::class_<DataTable>(m, "DataTable", "Columns of numbers and texts in memory.")
      .def(
          "__init__",
          [](DataTable* t, const std::string& name) {
            new (t) DataTable;
            t->path = name;
          },
          nb::arg("name") = "the table")
      .def("add_numbers", &add_numbers, nb::arg("name"), nb::arg("numbers"))
      .def("add_texts", &add_texts, nb::arg("name"), nb::arg("texts"),
           "Codes into texts; -1: missing.");
  nb::class_<Model> c(
      m, "Model",
      "One linear model per agent, as model.json holds it.\n\n"
      ">>> import affpcl\n"
      ">>> rows = {'agent': ['a', 'b'] * 10, 'size': list(range(20)), 'y': list(range(20))}\n"
      ">>> affpcl.fit(rows, target='y').model.sources\n['size']");
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
      .def("predict", &predict_numbers, nb::arg("X"), nb::arg("groups"),
           nb::arg("offset") = nb::none())
      .def("predict_interval", &predict_intervals, nb::arg("X"), nb::arg("groups"),
           nb::arg("offset") = nb::none(), nb::arg("level") = kConfidence,
           "Columns: prediction, and the ends of its interval.")
      .def("predict_proba", &predict_classes, nb::arg("X"), nb::arg("groups"),
           nb::arg("offset") = nb::none())
      .def("predict_table", &predict_table, nb::arg("table"), nb::arg("level") = kConfidence,
           "Columns: prediction and the ends of its interval, or the probabilities of classes.")
      .def(
          "predict_files",
          [](const Model& model, const std::vector<std::string>& files, double level) {
            return predict(model, files, {}, level).csv;
          },
          nb::arg("files"), nb::arg("level") = kConfidence,
          nb::call_guard<nb::gil_scoped_release>(),
          "The files' rows with their predictions, as CSV.");
}

}  // namespace

void bind_fit(nb::module_& m) {
  bind_options(m);
  bind_model(m);
  nb::class_<FitResult>(m, "FitResult", "A model, and what learning together gained each agent.")
      .def_prop_ro("model", [](const FitResult& r) { return r.model; })
      .def_prop_ro("notes",
                   [](const FitResult& r) { return spell_options(r.notes, OptionStyle::kPython); })
      .def_ro("scored", &FitResult::scored)
      .def_ro("seconds", &FitResult::seconds)
      .def_ro("threads", &FitResult::threads)
      .def_prop_ro("headline", [](const FitResult& r) { return headline(r); })
      .def(
          "save",
          [](const FitResult& r, const std::string& path, bool force) {
            ResultFolder folder(path, force);
            folder.add("model.json", model_json(r.model));
            folder.add("summary.json", fit_summary_json(r));
            if (r.model.solver == SolverKind::kExact && !r.model.joined)
              folder.add("centre.json", centre_json(r.model, false));
            folder.commit();
          },
          nb::arg("path"), nb::arg("force"), "The folder that the command line writes.")
      .def("json", &fit_summary_json, "summary.json, as the command line writes it.");
  m.def("fit_arrays", &fit_arrays, nb::arg("X"), nb::arg("columns"), nb::arg("y"),
        nb::arg("labels"), nb::arg("groups"), nb::arg("options"),
        nb::arg("row_weight") = nb::none(), nb::arg("trials") = nb::none(),
        nb::arg("offset") = nb::none(), nb::arg("folds") = nb::none(),
        nb::arg("progress") = nb::none(),
        "Fits arrays; with labels y holds codes into them. The options name target and agent.");
  m.def("fit_files", &fit_files, nb::arg("options"), nb::arg("progress") = nb::none(),
        "Fits the files that the options name; progress(share) is called as the work goes on.");
  m.def("fit_table", &fit_table, nb::arg("table"), nb::arg("options"),
        nb::arg("progress") = nb::none(), "Fits a table in memory.");
}

}  // namespace affpcl::python
