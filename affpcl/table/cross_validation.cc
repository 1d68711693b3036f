#include "affpcl/table/cross_validation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/side_by_side.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/class_scores.h"
#include "affpcl/table/prediction_counts.h"
#include "affpcl/table/stack.h"

namespace affpcl {
namespace {

// Rows in each fold, over all processes.
std::vector<double> fold_sizes(const Frame& frame, Processes& processes) {
  std::vector<double> sizes(static_cast<std::size_t>(frame.folds()));
  for (std::size_t i = 0; i < frame.agents.size(); ++i)
    for (int f = 0; f < frame.folds(); ++f)
      sizes[static_cast<std::size_t>(f)] +=
          static_cast<double>(frame.begin(i, f + 1) - frame.begin(i, f));
  sum(processes, sizes);
  return sizes;
}

// What all agents may be given: each its combination, or one of the three models.
constexpr std::size_t kCandidates = ClassTally::kModels;

// One repeat of the cross-validation, and what all of them sum up to. Agents of this process only.
class CrossValidation {
 public:
  CrossValidation(const Frame& frame, int repeats, Team& team)
      : frame_(frame),
        team_(team),
        own_(own_agents(frame.agents.size(), team)),
        scorers_(static_cast<std::size_t>(frame.folds())),
        all_(count()),
        tallies_(count()),
        classes_(frame, repeats, team),
        counts_(frame, team) {}

  // Numbers that predict a row: room for the predictions of all folds.
  void make_room(std::size_t width) { predictions_.resize(frame_.rows * 3 * width); }

  // Predictions of the rows of one fold.
  void predict(const FoldFit& fit, int fold, Team& team) {
    std::unique_ptr<RowScorer>& scorer = scorers_[static_cast<std::size_t>(fold)] = fit.scorer();
    team.each(own_, [&](std::int64_t at, int) {
      const auto i = static_cast<std::size_t>(at);
      const std::size_t from = frame_.begin(i, fold), to = frame_.begin(i, fold + 1);
      if (from < to) fit.agent(i)->predict(from, to, predicted(*scorer, from));
    });
  }

  // Scores every fold that was predicted: with weights from the losses on the other folds, of blocks
  // in time from those before it.
  void score() {
    std::vector<std::vector<StackLosses>> losses(count(),
                                                 std::vector<StackLosses>(scorers_.size()));
    each([&](std::size_t i) { add_losses(i, losses[held(i)]); });
    for (std::size_t i = 0; i < count(); ++i)
      for (std::size_t f = 0; f < scorers_.size(); ++f) all_[i].add(losses[i][f], 1);
    std::vector<std::vector<ByKind<double>>> weights_of(scorers_.size());
    const auto find_weights = [&](std::size_t f, Team& team) {
      if (!scorers_[f]) return;
      std::vector<StackLosses> others(count());
      for (std::size_t i = 0; i < count(); ++i)
        for (std::size_t g = 0; g < scorers_.size(); ++g)
          others[i].add(losses[i][g], f == g || (forward() && g > f) ? 0 : 1);
      weights_of[f] = fold_weights(f, others, team);
    };
    if (!forward()) side_by_side(scorers_.size(), team_, find_weights);
    for (std::size_t f = 0; f < scorers_.size(); ++f) {
      if (!scorers_[f]) continue;
      if (forward()) find_weights(f, team_);  // they depend on the scores of the folds before
      const std::vector<ByKind<double>>& weights = weights_of[f];
      const bool shown = frame_.tests.empty();  // else test rows are
      team_.each(own_, [&](std::int64_t agent, int worker) {
        const auto i = static_cast<std::size_t>(agent);
        const Frame::Run rows = {frame_.begin(i, static_cast<int>(f)),
                                 frame_.begin(i, static_cast<int>(f) + 1)};
        add_scores(i, rows, *scorers_[f], weights[held(i)], tallies_[held(i)],
                   shown ? worker : kNoWorker);
      });
    }
    for (auto& scorer : scorers_) scorer.reset();
    ++repeats_;
  }

  // The weights that suit the rows of all folds, unless one of the three models has a smaller loss
  // over all agents: no table is given a model that is known to be worse. Fills in the tallies.
  std::vector<ByKind<double>> weights(Fitted& fitted) {
    const std::size_t best = best_candidate();
    const std::size_t shown = forward() ? 0 : best;  // blocks in time had candidates of their own
    each([&](std::size_t i) {
      fitted.tallies[i] = tallies_[held(i)][shown];
      fitted.tallies[i].scale(1.0 / repeats_);
    });
    fitted.classes = classes_.scores(shown, team_);
    fitted.predictions = counts_.counted(shown, team_);
    if (best > 0) return std::vector(count(), vertex(static_cast<Kind>(best - 1)));
    std::vector<StackLosses> mean(count());
    for (std::size_t i = 0; i < count(); ++i) mean[i].add(all_[i], 1.0 / repeats_);
    return stacked(mean, team_);
  }

  // Scores the test rows instead, with models of all other rows.
  void score_tests(const FoldFit& all, const std::vector<ByKind<double>>& weights, Fitted& fitted) {
    const std::unique_ptr<RowScorer> scorer = all.scorer();
    predictions_.resize(frame_.rows * 3 * scorer->width());
    team_.each(own_, [&](std::int64_t agent, int worker) {
      const auto i = static_cast<std::size_t>(agent);
      const Frame::Run rows = frame_.test_rows(i);
      std::array<RowTally, kCandidates> tally = {};
      if (rows.from < rows.to) {
        all.agent(i)->predict(rows.from, rows.to, predicted(*scorer, rows.from));
        add_scores(i, rows, *scorer, weights[held(i)], tally, worker);
      }
      fitted.tallies[i] = tally[0];
    });
    fitted.classes = classes_.scores(0, team_);
    fitted.predictions = counts_.counted(0, team_);
  }

 private:
  static constexpr int kNoWorker = -1;

  // The effects of a second factor's levels belong to the personalised model alone.
  bool stacks() const { return !frame_.encoding.leveled(); }
  bool forward() const { return frame_.held_out.how == Holdout::kForward; }
  std::size_t count() const { return static_cast<std::size_t>(own_.count()); }
  std::size_t held(std::size_t agent) const { return agent - static_cast<std::size_t>(own_.first); }
  double* predicted(const RowScorer& scorer, std::size_t row) {
    return predictions_.data() + row * 3 * scorer.width();
  }
  template <class Each>
  void each(Each agent) {
    team_.each(own_, [&](std::int64_t i, int) { agent(static_cast<std::size_t>(i)); });
  }
  std::vector<ByKind<double>> stacked(const std::vector<StackLosses>& losses, Team& team) {
    const Encoding& e = frame_.encoding;
    if (!stacks()) return std::vector(count(), vertex(Kind::kPersonalised));
    const bool log_losses = !e.classes.empty() || e.family == Family::kBinomial;
    return stack_weights(losses, frame_.agents.size(), log_losses, team);
  }

  // Of the four candidates, the one with the smallest loss on all rows that were scored so far. Of a
  // few agents that join a centre the smallest says little: they keep their combinations.
  std::size_t best_candidate() {
    if (!stacks() || frame_.joined) return 0;
    AgentSum sum("losses on held-out rows", kCandidates, frame_.agents.size(), team_);
    const double* const totals = sum([&](std::size_t i, double* out) {
      for (std::size_t c = 0; c < kCandidates; ++c) out[c] += tallies_[held(i)][c].loss.chosen;
    });
    return static_cast<std::size_t>(std::min_element(totals, totals + kCandidates) - totals);
  }

  // The weights that a fold is scored with, from the losses on others. In time these are all that is
  // known by then, and so is the candidate.
  std::vector<ByKind<double>> fold_weights(std::size_t fold, const std::vector<StackLosses>& others,
                                           Team& team) {
    if (!forward()) return stacked(others, team);
    bool first = true;
    for (std::size_t f = 0; f < fold; ++f) first &= scorers_[f] == nullptr;
    const std::size_t best = first ? 1 : best_candidate();
    if (best > 0) return std::vector(count(), vertex(static_cast<Kind>(best - 1)));
    return stacked(others, team);
  }

  void add_losses(std::size_t i, std::vector<StackLosses>& to) {
    std::array<RowLoss, kStackGrid> row;
    for (int f = 0; f < frame_.folds(); ++f) {
      const auto at = static_cast<std::size_t>(f);
      if (!scorers_[at]) continue;
      const RowScorer& scorer = *scorers_[at];
      for (std::size_t r = frame_.begin(i, f); r < frame_.begin(i, f + 1); ++r) {
        scorer.losses(i, r, predicted(scorer, r), stack_grid(), row.data());
        for (std::size_t g = 0; g < kStackGrid; ++g) to[at].loss[g] += row[g].loss;
        to[at].rows += 1;
      }
    }
  }

  // The scores of these rows; where there is a worker also counts of classes and predictions.
  void add_scores(std::size_t i, Frame::Run rows, const RowScorer& scorer,
                  const ByKind<double>& weights, std::array<RowTally, kCandidates>& tally,
                  int worker) {
    const std::array<ByKind<double>, kCandidates> models = {
        weights, vertex(Kind::kPersonalised), vertex(Kind::kIndependent), vertex(Kind::kPooled)};
    std::array<RowLoss, kCandidates> losses;
    for (std::size_t r = rows.from; r < rows.to; ++r) {
      scorer.losses(i, r, predicted(scorer, r), models, losses.data());
      for (std::size_t c = 0; c < kCandidates; ++c) {
        const ModelGap apart =
            scorer.apart(i, r, predicted(scorer, r), models[c], losses[c], losses[2]);
        tally[c].add({losses[c], apart, {losses[1], losses[2], losses[3]}}, frame_.wanted(i, r));
        tally[c].distance += scorer.distance(i, predicted(scorer, r), models[c]);
      }
      if (worker == kNoWorker) continue;
      for (std::size_t c = 0; c < kCandidates && counts_.counts(); ++c)
        counts_.add(worker, c, scorer.predicted(i, r, predicted(scorer, r), models[c]),
                    frame_.wanted(i, r));
      if (!classes_.counts()) continue;
      std::array<double, kCandidates> brier;
      for (std::size_t c = 0; c < kCandidates; ++c) {
        const std::vector<double> p = scorer.probabilities(predicted(scorer, r), models[c]);
        brier[c] = brier_score(p, static_cast<std::size_t>(frame_.classes[r]));
        classes_.add(worker, c, p, r);
      }
      for (std::size_t c = 0; c < kCandidates; ++c)
        tally[c].add_brier({brier[c], brier[1], brier[2], brier[3]}, frame_.weight(r));
    }
  }

  const Frame& frame_;
  Team& team_;
  Leaves own_;
  std::vector<std::unique_ptr<RowScorer>> scorers_;  // by fold; null: it was not predicted
  std::vector<double> predictions_;                  // [row][Kind][width]
  std::vector<StackLosses> all_;                     // over all repeats
  std::vector<std::array<RowTally, kCandidates>> tallies_;
  ClassTally classes_;
  PredictionTally counts_;
  int repeats_ = 0;
};

}  // namespace

std::vector<ByKind<double>> cross_validate(Frame& frame, FoldedSolver& solver, const FoldFit& all,
                                           const FitRun& run, Fitted& fitted) {
  const double parts = 1 + run.repeats * frame.folds();
  double done = 1;
  std::mutex reporting;
  const bool forward = frame.held_out.how == Holdout::kForward;
  CrossValidation validation(frame, run.repeats, run.team);
  fitted.scored = run.score && frame.all_rows > 1;
  if (fitted.scored) validation.make_room(all.scorer()->width());
  try {
    for (int repeat = 0; repeat < run.repeats && fitted.scored; ++repeat) {
      if (repeat > 0) frame.deal(run.seed, static_cast<std::uint32_t>(repeat));
      const std::vector<double> sizes = fold_sizes(frame, run.team.processes());
      side_by_side(sizes.size(), run.team, [&](std::size_t fold, Team& team) {
        const auto f = static_cast<int>(fold);
        if (run.stopped()) fitted.scored = fitted.complete = false;
        const auto held_out = static_cast<std::size_t>(sizes[fold]);
        const bool learnt = held_out < frame.all_rows && (f > 0 || !forward);
        if (!fitted.scored || held_out == 0 || !learnt) return;
        const std::unique_ptr<FoldFit> fit = solver.learn(frame, f, team);
        validation.predict(*fit, f, team);
        const std::lock_guard lock(reporting);
        run.report(++done / parts);
      });
      if (fitted.scored) validation.score();
    }
  } catch (const Interrupted&) {
    if (run.team.processes().apart()) throw;
    fitted.scored = fitted.complete = false;
  }
  run.team.set_stop(nullptr);  // what was learnt from all rows is kept
  const Leaves own = own_agents(frame.agents.size(), run.team);
  if (!fitted.scored)
    return std::vector(static_cast<std::size_t>(own.count()), vertex(Kind::kPersonalised));
  const std::vector<ByKind<double>> weights = validation.weights(fitted);
  if (!frame.tests.empty()) validation.score_tests(all, weights, fitted);
  return weights;
}

}  // namespace affpcl
