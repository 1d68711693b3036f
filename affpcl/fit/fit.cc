#include "affpcl/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/tables.h"
#include "affpcl/fit/test_rows.h"
#include "affpcl/mixed/mixed.h"
#include "affpcl/mixed/private_solver.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/stream/stream.h"
#include "affpcl/stream/td.h"
#include "affpcl/table/known.h"
#include "affpcl/table/score.h"

namespace affpcl {
namespace {

void refuse_weights(const FrameOptions& o) {
  if (o.channels.size() == 1)
    throw BadInput({.option = "channels",
                    .what = fmt::format("names one column, '{}'", o.channels[0]),
                    .remedy = "weighing needs two or more"});
  if (o.channels.empty() == !o.weights.empty())
    throw BadInput(o.weights.empty()
                       ? "`channels` needs `weights`, a file with each agent's weights of them"
                       : "`weights` needs `channels`, the columns that are weighed");
}

// What rows are held out is said once, and by an option that has an effect.
void refuse_held_out(const FitOptions& o) {
  const FrameOptions& f = o.frame;
  const bool stream = o.solver == SolverKind::kStream || o.td;
  if (stream && (!f.folds.empty() || !f.test.empty()))
    throw BadInput("`folds` and `test` belong to `solver exact`: a stream is scored as it learns");
  if (stream) return;
  if (!f.folds.empty() + !f.test.empty() + !f.time.empty() > 1)
    throw BadInput(
        "`folds`, `test` and `time` exclude each other: each says which rows are held out");
  if (!o.score && (!f.folds.empty() || !f.test.empty() || !f.time.empty()))
    throw BadInput(
        "`folds`, `test` and `time` say by which rows models are scored, and without scores they "
        "say "
        "nothing");
  if (o.repeats > 1 && (!f.folds.empty() || !f.time.empty()))
    throw BadInput(
        fmt::format("`repeats {}` deals rows into folds at random, and `{}` says which "
                    "rows each fold has",
                    o.repeats, f.folds.empty() ? "time" : "folds"));
}

// What the fit that made a centre has settled is not said again.
void refuse_beside_centre(const FitOptions& o) {
  constexpr std::string_view kOfAnAgent[] = {
      "target", "agent", "missing", "weights", "seed",    "time",     "folds", "score", "repeats",
      "sum",    "level", "threads", "sep",     "decimal", "encoding", "na",    "skip",  "comment"};
  const FitOptions usual;
  for (const Params<FitOptions>::Entry& entry : FitOptions::params().entries())
    if (std::find(std::begin(kOfAnAgent), std::end(kOfAnAgent), entry.param.name) ==
            std::end(kOfAnAgent) &&
        entry.get(o) != entry.get(usual))
      throw BadInput(
          fmt::format("`{}` does not go with `centre`, which has settled it", entry.param.name));
  if (o.td) throw BadInput("`task td` does not go with `centre`");
}

// What one release of moments cannot give is refused, and so are scores, since they would cost privacy too.
void refuse_private(const FitOptions& o) {
  if (o.privacy.empty()) {
    if (!o.bounds.empty()) throw BadInput("`bounds` belongs to `privacy`");
    return;
  }
  if (o.solver == SolverKind::kStream || o.td)
    throw BadInput("`privacy` belongs to `solver exact`: a stream would need noise in every step");
  if (o.repeats > 0)
    throw BadInput(
        "`repeats` does not go with `privacy`, which leaves scores out: they would cost more");
  refuse_beside_privacy(o.frame);
}

// A stream has linear models of numbers and of class indicators only.
FrameOptions frame_options(const FitOptions& o) {
  FrameOptions frame = o.frame;
  if (o.solver != SolverKind::kStream && !o.td) return frame;
  if (frame.family == "auto") frame.family = "gaussian";
  if (frame.family != "gaussian" || !frame.row_weight.empty() || !frame.offset.empty() ||
      !frame.trials.empty() || !frame.common.empty() || !frame.within.empty() ||
      !frame.crossed.empty())
    throw BadInput(
        "`family`, `row_weight`, `offset`, `trials`, `common`, `within` and `crossed` belong to "
        "`solver exact`");
  return frame;
}

std::unique_ptr<Solver> make_solver(const FitOptions& o) {
  if (o.td) return std::make_unique<TdSolver>(*o.td, o.stream);
  if (o.solver == SolverKind::kStream) return std::make_unique<StreamSolver>(o.stream);
  if (!o.privacy.empty())
    return std::make_unique<PrivateSolver>(o.mixed, PrivacyTerms::parse(o.privacy, o.bounds),
                                           o.release, o.job);
  return std::make_unique<MixedSolver>(o.mixed, o.centre);
}

std::unique_ptr<Team> make_team(const FitOptions& o, const Solver& solver) {
  std::unique_ptr<Team> team =
      thread_team(solver.uses_threads() ? threads_or_all(o.threads) : 1,
                  o.processes != nullptr ? *o.processes : this_process(), o.sum);
  if (!solver.looks_for_stop()) team->set_stop(o.stop);
  return team;
}

void count_traffic(Processes& processes, FitResult& result) {
  result.ranks = processes.count();
  const Processes::Traffic own = processes.traffic();
  const double numbers[] = {static_cast<double>(own.bytes), own.seconds};
  gather(processes, numbers, [&](std::span<const double> theirs) {
    result.bytes_sent += static_cast<std::int64_t>(theirs[0]);
    result.communication_seconds = std::max(result.communication_seconds, theirs[1]);
  });
}

// A multinomial model has matrices of that many rows.
bool takes_long(const Frame& frame) {
  const Encoding& e = frame.encoding;
  const bool multinomial = e.family == Family::kMultinomial;
  return frame.all_rows > FitOptions::kManyRows ||
         (multinomial && (e.classes.size() - 1) * frame.d > FitOptions::kManyCoefficients);
}

// Solves, and judges what the solver chose and scored.
FitResult solve(Solver& solver, Frame frame, const FitOptions& options, Team& team) {
  const auto start = std::chrono::steady_clock::now();
  const TestRows tests(options.frame, team, frame);
  const int repeats = frame.held_out.how != Holdout::kDealt ? 1
                      : options.repeats > 0                 ? options.repeats
                      : !takes_long(frame)                  ? FitOptions::kRepeats
                                                            : 1;
  Fitted fitted = solver.solve(frame, {.team = team,
                                       .seed = options.frame.seed,
                                       .score = options.score && options.privacy.empty(),
                                       .repeats = repeats,
                                       .stop = options.stop,
                                       .progress = options.progress});
  FitResult result;
  result.threads = team.workers();
  result.model = std::move(fitted.model);
  result.notes = frame.notes;
  result.notes.insert(result.notes.end(), fitted.notes.begin(), fitted.notes.end());
  result.scored = fitted.scored;
  result.complete = fitted.complete;
  result.repeats = repeats;
  result.level = options.level;
  result.held_out = frame.held_out;
  result.classes = std::move(fitted.classes);
  result.predictions = std::move(fitted.predictions);
  const bool apart = team.processes().apart();
  if (result.scored && (apart || team.processes().first())) {
    const std::unique_ptr<Team> alone = serial_team(this_process(), team.sums());
    judge_agents(frame, fitted.tallies, apart ? team : *alone, result);
    tests.score_unseen(result);
  }
  count_traffic(team.processes(), result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

FitOptions with_centre(FitOptions o) {
  if (!o.centre || o.frame.known) return o;
  refuse_beside_centre(o);
  o.frame = join_options(o.frame, *o.centre);
  return o;
}

FitResult fit(const FitOptions& given) {
  const FitOptions options = with_centre(given);
  refuse_weights(options.frame);
  refuse_held_out(options);
  refuse_private(options);
  const std::unique_ptr<Solver> solver = make_solver(options);
  const std::unique_ptr<Team> team = make_team(options, *solver);
  return solve(*solver, solver->read(frame_options(options), *team), options, *team);
}

FitResult fit(Tables tables, Encoding encoding, const FitOptions& given) {
  const FitOptions options = with_centre(given);
  if (!options.privacy.empty()) throw BadInput("`privacy` needs the rows in files, not in memory");
  refuse_weights(options.frame);
  refuse_held_out(options);
  const std::unique_ptr<Solver> solver = make_solver(options);
  const std::unique_ptr<Team> team = make_team(options, *solver);
  return solve(*solver,
               build_frame(std::move(tables), std::move(encoding), frame_options(options), *team,
                           solver->row_order()),
               options, *team);
}

}  // namespace affpcl
