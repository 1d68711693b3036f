#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "affpcl/output/results.h"
#include "affpcl/output/study_headline.h"
#include "affpcl/study/study.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {

namespace {

struct Options : CommonOptions {
  std::string spec, trace;
};

int run(Options o, const std::string& command_line) {
  const Study study = read_study_file(o.spec, o.overrides());
  if (finished_already(study, o, o.out)) return kOk;
  const bool first = processes(o.mpi).first();
  std::unique_ptr<ResultFolder> folder;  // refused before the work, not after
  if (o.report) refuse_report_without(o.out);
  if (!o.out.empty() && first) folder = std::make_unique<ResultFolder>(o.out, o.force);
  const StudyResult result = run_with_progress(study, o, o.trace);
  if (!first) return result.complete ? kOk : kInterrupted;
  if (folder) write_results(*folder, study, result, command_line);
  const std::string page = o.report ? write_report(o.out) : "";
  if (o.json) {
    std::fputs(summary_json(study, result, command_line).c_str(), stdout);
  } else if (!o.quiet) {
    std::fputs(results_table(result, output_style()).c_str(), stdout);
    if (folder) fmt::print("results in {}\n", o.out);
    if (o.report) fmt::print("page in {}\n", page);
  }
  if (!result.complete) return kInterrupted;
  if (!all_diverged(result)) return kOk;
  fmt::print(stderr, "affpcl: {}\n", headline(result));
  return kFailed;
}

}  // namespace

Verb run_verb(const std::string& command_line) {
  auto o = std::make_shared<Options>();
  Verb verb{.name = "run",
            .doc = "run methods on a problem, print the table, write a result folder",
            .examples =
                "Examples:\n  affpcl run examples/demo.toml --out result --set run.replicates=40\n"
                "  mpirun -np 64 affpcl run big.toml --out result --checkpoint saved --resume",
            .action = [o, command_line](const Verb&) { return run(*o, command_line); },
            .many_processes = true};
  verb.option("spec", &o->spec, "SPEC.toml",
              "the experiment, a TOML file (`affpcl list --keys` explains its keys)",
              {.required = true});
  add_common(
      verb, *o,
      "folder for summary.json, curves.csv, agents.csv; of recorded data also solutions.csv");
  add_report(verb, o->report);
  add_long_work(verb, *o);
  verb.option("--trace", &o->trace, "FILE.csv", "write every iterate of a small run as CSV");
  return verb;
}

}  // namespace affpcl::cli
