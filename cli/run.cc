#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "affpcl/study/results.h"
#include "affpcl/study/study.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {

Verb run_verb(CLI::App& app, const std::string& command_line) {
  struct Options {
    std::string spec, out, trace;
    std::vector<std::string> set;
    std::int64_t seed = -1;
    int threads = 0;
    bool force = false, quiet = false, json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("run", "run methods on a problem, print the table, write a result folder");
  verb->add_option("spec", o->spec, "the experiment, a TOML file (`affpcl list` names its keys)")
      ->required()
      ->type_name("SPEC.toml");
  verb->add_option("--out", o->out, "folder for summary.json, curves.csv, agents.csv")
      ->type_name("DIR");
  verb->add_flag("--force", o->force, "replace the folder if it exists");
  verb->add_option("--set", o->set, "change a key of the spec; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1, -1);
  verb->add_option("--seed", o->seed, "the same as --set run.seed=N")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  verb->add_option("--threads", o->threads,
                   "threads to use; the numbers do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->add_option("--trace", o->trace, "write every iterate of a small run as CSV")
      ->type_name("FILE.csv");
  verb->add_flag("--json", o->json, "print summary.json and nothing else");
  verb->add_flag("--quiet", o->quiet, "no table, no progress");
  verb->footer("Example:\n  affpcl run examples/demo.toml --out result --set run.replicates=40");
  return {verb, [o, command_line] {
            if (o->seed >= 0) o->set.push_back(fmt::format("run.seed={}", o->seed));
            const Study study = read_study_file(o->spec, o->set);
            std::unique_ptr<ResultFolder> folder;
            if (!o->out.empty())
              folder = std::make_unique<ResultFolder>(
                  o->out, o->force);  // refused before the work, not after
            StudyResult result;
            {
              ProgressLine progress(o->quiet || o->json);
              result = run_study(study, {.threads = o->threads,
                                         .stop = &interruption(),
                                         .progress = [&](double share) { progress(share); },
                                         .trace = o->trace});
            }
            if (folder) write_results(*folder, study, result, command_line);
            if (o->json) {
              std::fputs(summary_json(study, result, command_line).c_str(), stdout);
            } else if (!o->quiet) {
              std::fputs(results_table(result).c_str(), stdout);
              if (folder) fmt::print("results in {}\n", o->out);
            }
            return result.complete ? kOk : kInterrupted;
          }};
}

}  // namespace affpcl::cli
