// What verbs have in common.
#include <fmt/format.h>

#include <cstdio>

#include "affpcl/base/error.h"
#include "affpcl/output/results.h"
#include "affpcl/runtime/collectives.h"
#include "cli/processes.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace affpcl::cli {

std::vector<std::string> CommonOptions::overrides() const {
  std::vector<std::string> all = set;
  if (seed >= 0) all.push_back(fmt::format("run.seed={}", seed));
  return all;
}

void add_common(Verb& verb, CommonOptions& o, const std::string& out_doc) {
  verb.option("--out", &o.out, "DIR", out_doc);
  verb.flag("--force", &o.force, "replace the folder if it exists");
  verb.option("--set", &o.set, "KEY=VALUE", "change a key of the spec; may be repeated");
  verb.option("--seed", &o.seed, "N", "the same as --set run.seed=N", {.lo = 0});
  verb.option("--threads", &o.threads, "N",
              "threads to use; the numbers do not depend on it (default: all cores)",
              {.lo = 1, .hi = 4096});
  verb.flag("--json", &o.json, "print the summary as JSON and nothing else");
  verb.flag("--quiet", &o.quiet, "no table, no progress");
}

FrameOptions TableQuestions::options(std::uint64_t seed) const {
  FrameOptions o = frame;
  o.seed = seed;
  const Params<TableChoices>& params = TableChoices::params();
  params.read(Values(params.table(), choices, "options")).put(o);
  o.task = task == "regress" ? Task::kRegress : task == "classify" ? Task::kClassify : Task::kAuto;
  return o;
}

void add_table(Verb& verb, TableQuestions& o) {
  verb.option("--with", &o.frame.beside, "FILE",
              "a file with more columns of the same rows, say labels; may be given again");
  verb.option("--target", &o.frame.target, "COLUMN", "the column to predict");
  verb.option("--agent", &o.frame.agent, "COLUMN",
              "the column that says whose row it is (default: agent, else site)");
  verb.option("--features", &o.frame.features, "A,B",
              "columns to predict from (default: all others)", {.commas = true});
  verb.option("--exclude", &o.frame.exclude, "A,B", "columns to leave out", {.commas = true});
  for (const Param& param : TableChoices::params().table()) verb.option(param, o.choices);
  verb.option("--task", &o.task, "auto|regress|classify|td",
              "auto: a text target is a class; td: values of states from a log (fit)",
              {.choices = {"auto", "regress", "classify", "td"}});
}

void add_centre(Verb& verb, std::string& centre) {
  verb.option(
      "--centre", &centre, "FILE",
      "the centre.json (or model.json) of a fit that these agents took no part in: each gets its "
      "own model from it and its own rows; columns, family and --target are the centre's");
}

void add_long_work(Verb& verb, CommonOptions& o) {
  verb.option("--checkpoint", &o.checkpoint, "DIR",
              "keep what has been done in this folder, so that --resume can go on from it");
  verb.option("--every", &o.every, "N",
              "steps between two checkpoints (default: as many as take about a minute)", {.lo = 1});
  verb.flag("--resume", &o.resume, "go on from the newest checkpoint, if there is one");
  verb.option("--split", &o.split, "agents|replicates",
              "what the processes of mpirun share: the agents of each replicate, or whole "
              "replicates (default: by the number of agents)",
              {.choices = {"auto", "agents", "replicates"}});
  verb.flag("--mpi", &o.mpi, "use MPI even where no launcher is recognised");
}

bool finished_already(const Study& study, CommonOptions& o, const std::string& out) {
  if (!o.resume || out.empty()) return false;
  Processes& all = processes(o.mpi);
  std::vector<std::string> answer = {""};
  if (all.first()) {
    const Held held = o.force ? Held::kOther : held_result(out, study);
    if (held == Held::kComplete) answer = {"done"};
    if (held == Held::kIncomplete) o.force = true;
  }
  broadcast(all, answer);
  if (answer[0].empty()) return false;
  if (all.first())
    fmt::print(stderr,
               "affpcl: {} holds the complete result of this study; --force runs it again\n", out);
  return true;
}

StudyResult run_with_progress(const Study& study, const CommonOptions& o,
                              const std::string& trace) {
  if (o.checkpoint.empty() && (o.resume || o.every > 0))
    throw BadInput(fmt::format("{} needs --checkpoint DIR", o.resume ? "--resume" : "--every"));
  Processes& all = processes(o.mpi);
  ProgressLine progress(o.quiet || o.json || !all.first());
  using Split = StudyOptions::Split;
  StudyResult result =
      run_study(study, {.threads = o.threads > 0 ? o.threads : default_threads(),
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
                        .note =
                            [](const std::string& text) {
                              fmt::print(stderr, "affpcl: note: {}\n",
                                         spell_options(text, OptionStyle::kCommandLine));
                            },
                        .stopped = take_time_to_write});
  take_time_to_write();
  if (!result.complete && !o.checkpoint.empty() && all.first())
    fmt::print(stderr, "affpcl: stopped; the same command with --resume goes on from {}\n",
               o.checkpoint);
  return result;
}

}  // namespace affpcl::cli
