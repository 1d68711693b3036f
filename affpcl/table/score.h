// What rows that no model was learnt from say of the models: losses, what collaboration gained,
// which model an agent is given, and the verdicts. Both solvers are judged here.
#pragma once

#include <array>
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
  double loss = 0, right = 0;  // right: 1 where the class was
};
// Of predictions by channel, in units of the target; outcomes are weighed here, unless there is one
// number for all.
RowLoss row_loss(const Frame& frame, std::size_t agent, std::size_t row,
                 const std::vector<double>& channels);

struct RowTally {  // of one agent's rows
  Losses loss, right;
  Paired gain;
  double rows = 0, y1 = 0, y2 = 0;
  // The losses of Kind's models, in its order.
  void add(const std::array<RowLoss, 3>& losses, Kind given, double y);
};

// The model an agent's rows speak for: the personalised one, unless another is clearly better. What
// is given are the errors of the personalised model beyond those of the others.
Kind supported(const Paired& than_alone, const Paired& than_pooled);

// Fills in everything that is said of agents and of all rows.
void judge_agents(const Frame& frame, const std::vector<RowTally>& tallies, FitResult& result);

}  // namespace affpcl
