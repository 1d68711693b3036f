// What verbs have in common.
#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "affpcl/base/error.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {

std::vector<std::string> CommonOptions::overrides() const {
  std::vector<std::string> all = set;
  if (seed >= 0) all.push_back(fmt::format("run.seed={}", seed));
  return all;
}

void add_common(CLI::App& verb, CommonOptions& o, const std::string& out_doc) {
  verb.add_option("--out", o.out, out_doc)->type_name("DIR");
  verb.add_flag("--force", o.force, "replace the folder if it exists");
  verb.add_option("--set", o.set, "change a key of the spec; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--seed", o.seed, "the same as --set run.seed=N")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  verb.add_option("--threads", o.threads,
                  "threads to use; the numbers do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb.add_flag("--json", o.json, "print the summary as JSON and nothing else");
  verb.add_flag("--quiet", o.quiet, "no table, no progress");
}

FrameOptions TableQuestions::options(std::uint64_t seed) const {
  FrameOptions o = frame;
  o.seed = seed;
  o.missing = missing == "mean"   ? Missing::kMean
              : missing == "drop" ? Missing::kDrop
                                  : Missing::kError;
  o.task = task == "regress" ? Task::kRegress : task == "classify" ? Task::kClassify : Task::kAuto;
  return o;
}

void add_table(CLI::App& verb, TableQuestions& o) {
  const auto columns = [&](const char* name, std::vector<std::string>& list, const char* doc) {
    verb.add_option(name, list, doc)->delimiter(',')->allow_extra_args(false)->type_name("A,B");
  };
  verb.add_option("--with", o.frame.beside,
                  "a file with more columns of the same rows, say labels; may be given again")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb.add_option("--target", o.frame.target, "the column to predict")->type_name("COLUMN");
  verb.add_option("--agent", o.frame.agent,
                  "the column that says whose row it is (default: agent, else site)")
      ->type_name("COLUMN");
  columns("--features", o.frame.features, "columns to predict from (default: all others)");
  columns("--exclude", o.frame.exclude, "columns to leave out");
  verb.add_option("--missing", o.missing,
                  "blanks: an error, filled with the column's mean, or their rows dropped")
      ->check(CLI::IsMember({"error", "mean", "drop"}))
      ->type_name("error|mean|drop");
  verb.add_option("--task", o.task,
                  "auto: a text target is a class; td: values of states from a log (fit)")
      ->check(CLI::IsMember({"auto", "regress", "classify", "td"}))
      ->type_name("auto|regress|classify|td");
}

void add_long_work(CLI::App& verb, CommonOptions& o) {
  verb.add_option("--checkpoint", o.checkpoint,
                  "keep what has been done in this folder, so that --resume can go on from it")
      ->type_name("DIR");
  verb.add_option("--every", o.every,
                  "steps between two checkpoints (default: as many as take about a minute)")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()))
      ->type_name("N");
  verb.add_flag("--resume", o.resume, "go on from the newest checkpoint, if there is one");
  verb.add_option("--split", o.split,
                  "what the processes of mpirun share: the agents of each replicate, or whole "
                  "replicates (default: by the number of agents)")
      ->check(CLI::IsMember({"auto", "agents", "replicates"}))
      ->type_name("agents|replicates");
  verb.add_flag("--mpi", o.mpi, "use MPI even where no launcher is recognised");
}

StudyResult run_with_progress(const Study& study, const CommonOptions& o,
                              const std::string& trace) {
  if (o.checkpoint.empty() && (o.resume || o.every > 0))
    throw BadInput(fmt::format("{} needs --checkpoint DIR", o.resume ? "--resume" : "--every"));
  Processes& all = processes(o.mpi);
  ProgressLine progress(o.quiet || o.json || !all.first());
  using Split = StudyOptions::Split;
  StudyResult result = run_study(
      study,
      {.threads = o.threads > 0 ? o.threads : default_threads(),
       .stop = &interruption(),
       .progress = [&](double share) { progress(share); },
       .trace = trace,
       .processes = &all,
       .split = o.split == "agents"       ? Split::kAgents
                : o.split == "replicates" ? Split::kReplicates
                                          : Split::kAuto,
       .checkpoint = o.checkpoint,
       .every = o.every,
       .resume = o.resume,
       .note = [](const std::string& text) { fmt::print(stderr, "affpcl: note: {}\n", text); }});
  if (!result.complete && !o.checkpoint.empty() && all.first())
    fmt::print(stderr, "affpcl: stopped; the same command with --resume goes on from {}\n",
               o.checkpoint);
  return result;
}

}  // namespace affpcl::cli
