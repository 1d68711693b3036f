// Studies: a spec in, a result out, as tables of columns.
#include "affpcl/study/study.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "affpcl/output/benchmark_file.h"
#include "affpcl/output/results.h"
#include "affpcl/study/benchmark.h"
#include "affpcl/study/claims.h"
#include "affpcl/study/studies.h"
#include "python/core/core.h"

namespace affpcl::python {
namespace {

struct Outcome {
  Study study;
  StudyResult result;
};

Outcome run(const std::string& toml, const std::string& name,
            const std::vector<std::string>& overrides, int threads, const std::string& trace) {
  Outcome out{read_study(toml, name, overrides), {}};
  const auto work = [&](const std::atomic<bool>& stop) {
    return run_study(out.study,
                     {.threads = threads, .stop = &stop, .progress = {}, .trace = trace});
  };
  const bool python = std::any_of(out.study.settings.begin(), out.study.settings.end(),
                                  [](const Setting& s) { return written_in_python(s.spec); });
  if (!python) {
    out.result = interruptible(work);
    return out;
  }
  threads = 1;  // its functions would wait for each other, and Ctrl-C ends them by itself
  const std::atomic<bool> never = false;
  out.result = work(never);
  return out;
}

// Columns that grow row by row: those of the settings, then what `add` is given.
class Columns {
 public:
  void place(const SettingResult& setting) {
    for (const auto& [key, value] : setting.at) list(key).append(nb::cast(value));
  }
  void text(const char* name, const std::string& value) { list(name).append(value); }
  void whole(const char* name, std::int64_t value) { list(name).append(value); }
  void number(const std::string& name, double value) { numbers_[at(name)].push_back(value); }
  void estimate(const std::string& name, const Estimate& e) {
    number(name + "_mean", e.mean);
    number(name + "_lo", e.lo);
    number(name + "_hi", e.hi);
  }
  nb::dict take() {
    nb::dict all;
    for (std::size_t i = 0; i < names_.size(); ++i)
      all[names_[i].c_str()] =
          lists_[i].size() > 0 ? nb::object(lists_[i]) : nb::cast(to_numpy(std::move(numbers_[i])));
    return all;
  }

 private:
  std::size_t at(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    lists_.emplace_back();
    numbers_.emplace_back();
    return names_.size() - 1;
  }
  nb::list& list(const std::string& name) { return lists_[at(name)]; }
  std::vector<std::string> names_;
  std::vector<nb::list> lists_;
  std::vector<std::vector<double>> numbers_;
};

nb::dict summary(const StudyResult& result) {
  Columns c;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods) {
      c.place(s);
      c.text("method", m.name);
      c.text("kind", m.kind);
      c.estimate("mse", m.mse);
      c.number("mse_median", m.mse.median);
      c.estimate("vs_independent", m.vs_independent);
      c.number("central_x", m.central_x);
      c.number("central_theta", m.central_theta);
      c.whole("replicates", s.replicates);
      c.whole("used", s.used);
      c.whole("sent", m.sent);
      c.number("up", m.up);
      c.number("down", m.down);
      c.number("seconds", m.seconds);
    }
  return c.take();
}

nb::dict curves(const StudyResult& result) {
  Columns c;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (const Curve& curve : m.curves)
        for (std::size_t t = 0; t < curve.steps.size(); ++t) {
          c.place(s);
          c.text("method", m.name);
          c.whole("agent", curve.agent);
          c.number("step", curve.steps[t]);
          c.estimate("mse", curve.mse[t]);
          c.number("mse_median", curve.mse[t].median);
        }
  return c.take();
}

nb::dict agents(const StudyResult& result) {
  std::vector<std::string> known;  // what any method knows of its agents; NaN for the others
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (const std::string& name : m.columns)
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  Columns c;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (std::size_t i = 0; i < m.agents.size(); ++i) {
        c.place(s);
        c.text("method", m.name);
        c.whole("agent", static_cast<std::int64_t>(i));
        c.estimate("mse", m.agents[i].mse);
        c.estimate("vs_independent", m.agents[i].vs_independent);
        for (const std::string& name : known) {
          const auto at = std::find(m.columns.begin(), m.columns.end(), name) - m.columns.begin();
          const auto column = static_cast<std::size_t>(at);
          c.number(name, column < m.columns.size() ? m.agents[i].columns[column]
                                                   : std::numeric_limits<double>::quiet_NaN());
        }
      }
  return c.take();
}

nb::list claims(const Outcome& out, const std::string& name) {
  nb::list all;
  for (const Verdict& v : judge(std::string(embedded_study(name).claims), name, out.result)) {
    nb::dict one;
    one["says"] = v.says;
    one["measured"] = v.measured;
    one["lo"] = v.lo;
    one["hi"] = v.hi;
    one["holds"] = v.holds;
    all.append(one);
  }
  return all;
}

// On this thread: methods written in Python would wait for each other on several.
std::string benchmark(const std::vector<std::string>& methods,
                      const std::vector<std::string>& problems, bool tuned, std::uint64_t seed) {
  return benchmark_json(
      run_benchmark(
          {.methods = methods, .problems = problems, .tuned = tuned, .seed = seed, .threads = 1}),
      "affpcl.benchmark()");
}

}  // namespace

void bind_study(nb::module_& m) {
  nb::class_<Outcome>(m, "Outcome", "A study and what came of it.")
      .def_prop_ro("name", [](const Outcome& o) { return o.study.name; })
      .def_prop_ro("title", [](const Outcome& o) { return o.study.title; })
      .def_prop_ro("toml", [](const Outcome& o) { return o.study.toml; })
      .def_prop_ro("complete", [](const Outcome& o) { return o.result.complete; })
      .def_prop_ro("seconds", [](const Outcome& o) { return o.result.seconds; })
      .def_prop_ro("threads", [](const Outcome& o) { return o.result.threads; })
      .def("summary", [](const Outcome& o) { return summary(o.result); })
      .def("curves", [](const Outcome& o) { return curves(o.result); })
      .def("agents", [](const Outcome& o) { return agents(o.result); })
      .def("claims", &claims, nb::arg("study"))
      .def(
          "json",
          [](const Outcome& o, const std::string& command) {
            return summary_json(o.study, o.result, command);
          },
          nb::arg("command"), "summary.json, as the command line writes it.")
      .def(
          "save",
          [](const Outcome& o, const std::string& path, bool force, const std::string& command) {
            ResultFolder folder(path, force);
            write_results(folder, o.study, o.result, command);
          },
          nb::arg("path"), nb::arg("force"), nb::arg("command"),
          "The result folder, as the command line writes it.");
  m.def("run", &run, nb::arg("toml"), nb::arg("name"), nb::arg("overrides"), nb::arg("threads"),
        nb::arg("trace"), "Runs a study; threads 0: as many as the machine has.");
  m.def("benchmark", &benchmark, nb::arg("methods"), nb::arg("problems"), nb::arg("tuned"),
        nb::arg("seed"), "benchmark.json of the benchmark, on one thread.");
}

}  // namespace affpcl::python
