// Scores on held-out rows: losses, gains and the verdicts, for all solvers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/table/model.h"

namespace affpcl {

class Team;

struct Paired {  // sums of powers of paired differences
  double n = 0, s1 = 0, s2 = 0;
  void add(double v) { ++n, s1 += v, s2 += v * v; }
  double mean() const { return s1 / n; }
  double se() const;  // of the mean; NaN for fewer than two
};

struct RowLoss {
  double loss = 0, right = 0;  // right: 1 where the class is
};
// The loss of predictions by channel, in units of the target. Outcomes are weighted here, unless
// there is one number for all.
RowLoss row_loss(const Frame& frame, std::size_t agent, std::size_t row,
                 std::span<const double> channels);

// How far the independent model of a row is from the chosen one: the gain of rows of which the chosen
// one is right, and a squared distance that is the same to second order. One number for squared
// errors.
struct ModelGap {
  double gap = 0, norm = 0;
};
// From the losses of the chosen model, the independent one and the one halfway between them, which
// for squared errors lie on a parabola.
ModelGap parabola(const RowLoss& chosen, const RowLoss& independent, const RowLoss& middle);

// The losses of one held-out row.
struct RowScore {
  RowLoss chosen;
  ModelGap apart;
  ByKind<RowLoss> kinds;
};

// Sums over one agent's held-out rows. The gain of a row is gap - 2 slope, with the slope 0 on average
// where the chosen model is right.
struct RowTally {
  Losses loss, right;
  double rows = 0, y1 = 0, y2 = 0;
  double gap = 0, norm = 0, slope = 0, slope2 = 0;  // slope2: squares of the rows' slopes
  double distance = 0;                              // squared, of the two models' linear predictors
  // Of the two models from all rows: their squared distance on a new row, the standard deviation of
  // its logarithm, and the mean square of the chosen model's error along their difference. NaN where
  // the solver does not say. Where `new_rows` has a norm it has the gap and the norm of new rows, and
  // the error is in units of them.
  double in_hand = 0, vague = 0, unsure = 0;
  ModelGap new_rows;
  // Brier scores of a target with classes, and the weight of their rows.
  Losses brier;
  double weight = 0;
  void add(const RowScore& row, double y);
  void add_brier(const Losses& row, double row_weight);
  void scale(double by);
};

// The model that an agent's rows support in a stream: the personalised one, unless a baseline is
// clearly better. The arguments are the personalised model's errors minus those of the baselines.
Kind supported(const Paired& than_independent, const Paired& than_pooled);

// Fills in the scores of the team's own agents, whose tallies these are, and of all rows.
void judge_agents(const Frame& frame, const std::vector<RowTally>& own, Team& team,
                  FitResult& result);

}  // namespace affpcl
