#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/base/json.h"
#include "affpcl/output/benchmark_file.h"
#include "affpcl/output/results.h"
#include "affpcl/study/benchmark.h"
#include "affpcl/study/claims.h"
#include "affpcl/study/studies.h"
#include "affpcl/study/study.h"
#include "cli/figures.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {
namespace {

constexpr std::string_view kBenchmark = "benchmark";

void print_studies() {
  for (const EmbeddedStudy& s : embedded_studies())
    fmt::print("  {:<18} {}\n", s.name, read_study(std::string(s.spec), std::string(s.name)).title);
  fmt::print("  {:<18} {}\n", kBenchmark,
             "every method on every kind of problem at three levels; not part of 'all'");
}

bool needs_data(const EmbeddedStudy& study) {
  return read_study(std::string(study.spec), std::string(study.name))
             .settings.front()
             .spec.problem_kind == "rows";
}

// A study of recorded rows finds its files in the folder that the user names: below it by the path
// in the spec, which names the data set, or directly in it.
std::vector<std::string> with_data(std::vector<std::string> overrides, const EmbeddedStudy& study,
                                   const std::string& folder) {
  if (!needs_data(study)) return overrides;
  if (folder.empty())
    throw BadInput(fmt::format(
        "{} needs --data DIR, a folder with features.npy and labels.csv (make features)",
        study.name));
  const Study plain = read_study(std::string(study.spec), std::string(study.name));
  for (const char* key : {"file", "with"}) {
    const std::filesystem::path whole = plain.settings.front().spec.problem.text(key),
                                below = folder /
                                        whole.lexically_relative(std::filesystem::current_path()),
                                path = std::filesystem::exists(below) ? below
                                                                      : folder / whole.filename();
    overrides.insert(overrides.begin(), fmt::format("problem.{}={}", key, path.string()));
  }
  return overrides;
}

std::string verdicts_text(const std::vector<Verdict>& verdicts) {
  std::string out;
  for (const Verdict& v : verdicts)
    out += fmt::format("  {}  {}: {:.3g}, expected {:.3g} to {:.3g}\n",
                       v.holds ? "holds  " : "DIFFERS", v.says, v.measured, v.lo, v.hi);
  return out;
}

struct Options : CommonOptions {
  std::vector<std::string> names, methods, problems;
  std::string data, tune, figures;
  bool full = false;
  double participation = 0;
};

// embedded_study, whose suggestions know the benchmark too.
const EmbeddedStudy& study_of(const std::string& name) {
  constexpr std::string_view benchmark[] = {kBenchmark};
  if (const std::string meant = did_you_mean(name, benchmark); !meant.empty())
    throw BadInput(fmt::format("there is no study '{}'; did you mean '{}'?", name, meant));
  return embedded_study(name);
}

// The studies that are named, each once.
std::vector<const EmbeddedStudy*> chosen_studies(const Options& o) {
  std::vector<const EmbeddedStudy*> chosen;
  const auto add = [&](const EmbeddedStudy& study) {
    if (std::find(chosen.begin(), chosen.end(), &study) == chosen.end()) chosen.push_back(&study);
  };
  for (const std::string& name : o.names) {
    if (name != "all") {
      add(study_of(name));
      continue;
    }
    for (const EmbeddedStudy& s : embedded_studies())
      if (!o.data.empty() || !needs_data(s)) add(s);
  }
  return chosen;
}

// A study to run, and where its results go.
struct Job {
  const EmbeddedStudy* source;
  Study study;
  std::string path;
  bool later = false;                         // another study comes before it
  bool done = false;                          // its result is there, and --resume was asked for
  std::unique_ptr<ResultFolder> folder = {};  // of the first process, with --out
};

// Everything that can be refused is refused here, before the work.
std::vector<Job> plan(const Options& o, bool first) {
  const std::vector<const EmbeddedStudy*> chosen = chosen_studies(o);
  std::vector<Job> jobs;
  for (const EmbeddedStudy* s : chosen) {
    const std::string name(s->name);
    Job& job = jobs.emplace_back(
        Job{.source = s,
            .study = read_study(std::string(s->spec), name, with_data(o.overrides(), *s, o.data)),
            .path = chosen.size() == 1 ? o.out : o.out + "/" + name,
            .later = !jobs.empty()});
    Options own = o;
    job.done = finished_already(job.study, own, o.out.empty() ? "" : job.path);
    if (!o.out.empty() && first && !job.done)
      job.folder = std::make_unique<ResultFolder>(job.path, own.force);
  }
  return jobs;
}

// Judges and writes one result; prints it, or adds it to `all` with --json.
void give_out(const Job& job, const StudyResult& result, const Options& o,
              const std::string& command_line, const std::string& python, Json& all) {
  const std::string& name = job.study.name;
  const std::vector<Verdict> verdicts = result.complete
                                            ? judge(std::string(job.source->claims), name, result)
                                            : std::vector<Verdict>{};
  if (job.folder) {
    job.folder->add("claims.json", claims_json(verdicts));
    write_results(*job.folder, job.study, result, command_line);
  }
  const std::string page = o.report ? write_report(job.path) : "";
  const std::string figure = python.empty() ? "" : job.path + "/" + name + "." + o.figures;
  if (!figure.empty()) draw_figure(python, job.path, figure);
  if (o.json) {
    Json one = parse_json(summary_json(job.study, result, command_line));
    one["claims"] = parse_json(claims_json(verdicts));
    all[name] = std::move(one);
  } else if (!o.quiet) {
    fmt::print("{}{}: {}\n", job.later ? "\n" : "", name, job.study.title);
    std::fputs(results_table(result, output_style()).c_str(), stdout);
    std::fputs(verdicts_text(verdicts).c_str(), stdout);
    fmt::print("{:.2f} s\n", result.seconds);
    if (o.report) fmt::print("page in {}\n", page);
    if (!figure.empty()) fmt::print("figure in {}\n", figure);
    std::fflush(stdout);
  }
}

bool asks_for_benchmark(const Options& o) {
  const bool asks = std::find(o.names.begin(), o.names.end(), kBenchmark) != o.names.end();
  if (asks && o.names.size() > 1)
    throw BadInput("the benchmark is no single study: reproduce it in a command of its own");
  if (asks && !o.figures.empty())
    throw BadInput("the benchmark has no figure: `report` shows its tables");
  if (asks && (!o.set.empty() || !o.checkpoint.empty()))
    throw BadInput(
        "the benchmark has a plan of its own, which `set` and `checkpoint` do not reach");
  if (!asks && (!o.tune.empty() || !o.methods.empty() || !o.problems.empty() || o.full ||
                o.participation != 0))
    throw BadInput(
        "`method`, `problem`, `full`, `participation` and `tune` belong to the benchmark: "
        "reproduce benchmark");
  if (o.full && o.data.empty())
    throw BadInput(
        "`full` needs `data`, a folder with features.npy and labels.csv (make features)");
  return asks;
}

int reproduce_benchmark(const Options& o, const std::string& command_line) {
  ProgressLine progress(o.quiet || o.json);
  BenchmarkOptions options{.methods = o.methods,
                           .problems = o.problems,
                           .data = o.data,
                           .full = o.full,
                           .participation = o.participation,
                           .threads = o.threads,
                           .stop = &interruption(),
                           .progress = [&](double share) { progress(share); }};
  if (o.seed >= 0) options.seed = static_cast<std::uint64_t>(o.seed);
  if (!o.tune.empty()) {
    refuse_unwritable(o.tune);
    write_file(o.tune, tune_benchmark(options, command_line));
    return kOk;
  }
  std::unique_ptr<ResultFolder> folder;  // refused before the work, not after
  if (o.report) refuse_report_without(o.out);
  if (!o.out.empty()) folder = std::make_unique<ResultFolder>(o.out, o.force);
  const BenchmarkResult result = run_benchmark(options);
  take_time_to_write();
  const std::string json = benchmark_json(result, command_line);
  if (folder) {
    folder->add("benchmark.json", json);
    if (o.report) folder->add("report.html", benchmark_page(result, command_line));
    folder->commit();
  }
  if (o.json) {
    std::fputs(json.c_str(), stdout);
  } else if (!o.quiet) {
    std::fputs(benchmark_table(result).c_str(), stdout);
    fmt::print("{:.2f} s\n", result.seconds);
    if (folder) fmt::print("results in {}\n", o.out);
  }
  return result.complete ? kOk : kInterrupted;
}

int reproduce(const Options& o, const std::string& command_line) {
  if (o.names.empty()) return print_studies(), kOk;
  if (asks_for_benchmark(o)) return reproduce_benchmark(o, command_line);
  if (o.report) refuse_report_without(o.out);
  const bool first = processes(o.mpi).first();
  const std::string python = o.figures.empty() || !first ? "" : figure_python(o.out);
  const std::vector<Job> jobs = plan(o, first);
  Json all = Json::object();
  for (const Job& job : jobs) {
    if (job.done) continue;
    CommonOptions own = o;
    if (!o.checkpoint.empty() && jobs.size() > 1)
      own.checkpoint = o.checkpoint + "/" + job.study.name;
    const StudyResult result = run_with_progress(job.study, own);
    if (first) give_out(job, result, o, command_line, python, all);
    if (result.complete) continue;
    if (first && o.json) fmt::print("{}\n", print_json(all, {.indent = 1}));
    return kInterrupted;
  }
  if (!first) return kOk;
  if (o.json)
    fmt::print("{}\n", print_json(jobs.size() == 1 ? all.members()[0].value : all, {.indent = 1}));
  if (!o.json && !o.quiet && !o.out.empty()) fmt::print("results in {}\n", o.out);
  return kOk;
}

}  // namespace

Verb reproduce_verb(const std::string& command_line) {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "reproduce",
            .doc = "the paper's figures and theorems, with what was expected",
            .examples =
                "Examples:\n  affpcl reproduce fig-comparison --out result --figures pdf\n"
                "  affpcl reproduce all\n"
                "  affpcl reproduce benchmark --out result --report",
            .action = [o, command_line](const Verb&) { return reproduce(*o, command_line); },
            .many_processes = true};
  verb.option("names", &o->names, "NAME…", "which studies; 'all' for all; none lists them");
  verb.option("--data", &o->data, "DIR",
              "folder of the features that the fig-real studies need; without it `all` leaves them "
              "out");
  verb.option("--method", &o->methods, "KIND…", "benchmark: these methods only");
  verb.option("--problem", &o->problems, "NAME…", "benchmark: these problems only");
  verb.option("--participation", &o->participation, "SHARE",
              "benchmark: so many of the agents in each round; default: the plan's, all");
  verb.flag("--full", &o->full, "benchmark: four times the systems, and with --data");
  verb.option("--tune", &o->tune, "FILE.json",
              "benchmark: search its grid of parameters on other systems and write the best");
  add_common(verb, *o, "folder for the results; several studies get one folder each below it");
  add_report(verb, o->report);
  verb.option("--figures", &o->figures, "FORMAT",
              "also draw the paper's figure as DIR/NAME.FORMAT (needs --out, and affpcl[plot] for "
              "Python)",
              {.choices = {"pdf", "svg", "png"}});
  add_long_work(verb, *o);
  return verb;
}

}  // namespace affpcl::cli
