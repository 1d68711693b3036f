#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "affpcl/base/error.h"
#include "affpcl/data/inputs.h"
#include "affpcl/output/federation_file.h"
#include "affpcl/output/results.h"
#include "affpcl/output/study_headline.h"
#include "affpcl/study/study.h"
#include "cli/job_file.h"
#include "cli/processes.h"
#include "cli/site.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {

namespace {

struct Options : CommonOptions {
  std::string spec, trace, sum;
  SiteOfJob site;
};

// The job comes from others: the files are the site's own.
void refuse_files(const Options& o) {
  const Study asked = read_study_file(o.spec);
  for (const Setting& s : asked.settings) {
    for (const char* key : {"file", "with", "weights"})
      if (const auto value = s.spec.problem.all().find(key);
          value != s.spec.problem.all().end() && value->second != Value(""))
        throw BadInput(fmt::format(
            "problem.{} is not for the job to say: every site has files of its own", key));
    if (!s.spec.schedule.empty())
      throw BadInput("run.schedule is not available in a federation; run.participation is");
  }
}

// This site's part of a federated study: its own agents' results, in the folder.
int run_at_site(const Options& o, const std::string& command_line) {
  if (o.out.empty()) throw BadInput("--site needs --out, the folder of the site's own results");
  if (!o.trace.empty() || !o.checkpoint.empty() || o.resume)
    throw BadInput(
        "--trace, --checkpoint and --resume are not for a site: the centre keeps a journal");
  refuse_files(o);
  const Study study = read_study_file(o.spec, o.overrides());
  if (o.report) refuse_report_without(o.out);
  ResultFolder folder(o.out, o.force);
  const InputScope inputs(&interruption());
  std::vector<std::string> files;
  for (const char* key : {"file", "with", "weights"})
    files.push_back(study.settings[0].spec.problem.text(key));
  SiteOfJob site_of_job = o.site;
  site_of_job.sent = kept_beside(o.out, o.site, "sent");
  site_of_job.rows = hash_of_files(o.site.job, files);
  SiteStudy done;
  at_site(
      site_of_job,
      [&](SiteProcesses& site) {
        done =
            run_study_at_site(study, {.threads = o.threads,
                                      .stop = &interruption(),
                                      .progress = [&](double share) { site.set_progress(share); },
                                      .processes = &site});
        take_time_to_write();
        return centre_json(done);
      },
      [&](const SiteProcesses& site) {
        folder.add("centre.json", centre_json(done));
        folder.add("ledger.json", ledger_json(site));
        write_results(folder, study, done.result, command_line);
        if (o.report) write_report(o.out);
      });
  std::filesystem::remove(site_of_job.sent);  // the ledger has it
  return kOk;
}

int run(Options o, const std::string& command_line) {
  if (!o.site.name.empty()) return run_at_site(o, command_line);
  std::vector<std::string> overrides = o.overrides();
  if (!o.sum.empty()) overrides.push_back("method.sum=" + o.sum);
  const Study study = read_study_file(o.spec, overrides);
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
  verb.option("--sum", &o->sum, "float|fixed", std::string(kSumsDoc),
              {.choices = {EnumNames<Sums>::all.begin(), EnumNames<Sums>::all.end()}});
  add_site(verb, o->site);
  verb.option("--trace", &o->trace, "FILE.csv", "write every iterate of a small run as CSV");
  return verb;
}

}  // namespace affpcl::cli
