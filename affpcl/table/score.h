// Scores on held-out rows: losses, gains, the choice of an agent's model and the verdicts, for all
// solvers.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/table/model.h"

namespace affpcl {

struct Paired {  // sums of powers of paired differences
  double n = 0, s1 = 0, s2 = 0, s3 = 0;
  void add(double v) { ++n, s1 += v, s2 += v * v, s3 += v * v * v; }
  double mean() const { return s1 / n; }
  double se() const;  // of the mean; NaN for fewer than two
};

struct RowLoss {
  double loss = 0, right = 0;  // right: 1 where the class is
};
// The loss of predictions by channel, in units of the target. Outcomes are weighted here, unless
// there is one number for all.
RowLoss row_loss(const Frame& frame, std::size_t agent, std::size_t row,
                 const std::vector<double>& channels);

struct RowTally {  // sums over one agent's held-out rows
  Losses loss, right;
  Paired gain;
  double rows = 0, y1 = 0, y2 = 0;
  void add(const ByKind<RowLoss>& losses, Kind chosen, double y);
};

// The model that an agent's rows support: the personalised one, unless a baseline is clearly
// better. The arguments are the personalised model's errors minus those of the baselines.
Kind supported(const Paired& than_independent, const Paired& than_pooled);

// Fills in the scores of the agents and of all rows.
void judge_agents(const Frame& frame, const std::vector<RowTally>& tallies, FitResult& result);

}  // namespace affpcl
