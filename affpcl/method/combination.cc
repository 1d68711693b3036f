#include "affpcl/method/combination.h"

#include <algorithm>
#include <cmath>

#include "affpcl/method/guard_rows.h"

namespace affpcl {
namespace {

// Round tau weighs tau^2. The share of round t in the mean of the first t, and the sum of the
// squared shares.
double newest_share(double t) { return 6 * t / ((t + 1) * (2 * t + 1)); }
double squared_shares(double t) {
  return 6 * (3 * t * t + 3 * t - 1) / (5 * t * (t + 1) * (2 * t + 1));
}

}  // namespace

struct Combination::Sums : CombinationSums {
  CombinationShares shares;
  CombinationAgain again;
  alignas(64) double average[kLanes] = {};  // |mean of delta|^2
};

void Combination::declare(const Setup& setup, Layout& agent) {
  if (!on_) return;
  const int d = setup.problem.shape().d;
  averaged_ = setup.averaged;
  rows_ = setup.problem.facets().recorded;
  y_ = agent.add("independent", d);
  z_ = agent.add("combined", d);
  e_ = agent.add("combination_g", d);
  h_ = agent.add("combination_h", d);
  hbar_ = agent.add("combination_mean", rows_ != nullptr ? d : 0);
  numbers_ = agent.add("combination", CombinationRow::kRows);
  if (!averaged_) return;
  average_ = agent.add("combination_delta", d);
  of_average_ = agent.add("combination_average", AverageRow::kRows);
}

void Combination::start(const Problem& problem, Agents agents) const {
  if (!on_) return;
  problem.start(agents.lanes, agents[y_]);
  copy(agents[y_], agents[z_]);
}

Combination::Walk::Walk(const Combination& combination, const Block& block, In x)
    : c_(combination), block_(block) {
  if (!c_.on_) return;
  const int d = c_.y_.rows;
  Scratch& scratch = block.scratch();
  g_ = scratch.rows(d), before_ = scratch.rows(d), alpha_ = scratch.rows(1);
  subtract(x, block.agents[c_.y_], before_);
  fill(alpha_, 0);
  if (block.batch.steps == 1) return;  // the only step's g and h are the sums
  own_ = scratch.rows(d), correction_ = scratch.rows(d);
  fill(own_, 0);
  fill(correction_, 0);
}

void Combination::Walk::step(int k, In h) {
  if (!c_.on_) return;
  const Out y = block_.agents[c_.y_];
  const In alpha = block_.step_sizes(k);
  direction(block_, k, y, g_);
  descend(y, alpha, g_);
  add_scaled(alpha_, 1, alpha);
  if (block_.batch.steps == 1) {
    h_ = h;
    return;
  }
  descend(own_, alpha, g_);
  descend(correction_, alpha, h);
}

void Combination::Walk::end(In x) {
  if (!c_.on_) return;
  Sums sums;
  c_.take_in(*this, x, sums);
  const Agents agents = block_.agents;
  weigh_rows(sums, alpha_, sums.shares, sums.again, x.rows, agents[c_.numbers_],
             agents[c_.of_average_], sums.average);
  combine_rows(x, agents[c_.y_], c_.share(agents).p, agents[c_.z_]);
}

Out Combination::share(Agents agents) const {
  const Out all = agents[numbers_];
  return {all.row(CombinationRow::kShare), 1, all.lanes};
}

void Combination::take_in(const Walk& walk, In x, Sums& sums) const {
  const Agents agents = walk.block_.agents;
  const Out y = agents[y_], h = agents[h_], alpha = walk.alpha_;
  const bool one_step = walk.block_.batch.steps == 1;
  const double* count = agents[numbers_].row(CombinationRow::kCount);
  CombinationShares& shares = sums.shares;
  alignas(64) double scale[kLanes], moved[kLanes];
  for (int l = 0; l < y.lanes; ++l) {
    scale[l] = one_step ? 1 : alpha.p[l] > 0 ? -1 / alpha.p[l] : 0;
    moved[l] = one_step ? -alpha.p[l] : 1;
    const bool same = l > 0 && count[l] == count[l - 1];  // agents of a block mostly are
    const double t = count[l] + 1, before = std::max(t - 1, 1.0);
    shares.older[l] = same ? shares.older[l - 1] : newest_share(before);
    shares.newest[l] = same ? shares.newest[l - 1] : newest_share(t);
    shares.older_chance[l] = same ? shares.older_chance[l - 1] : squared_shares(before);
    shares.chance[l] = same ? shares.chance[l - 1] : squared_shares(t);
  }
  combination_rows({x, y, walk.before_, one_step ? walk.g_ : walk.own_,
                    one_step ? walk.h_ : In(walk.correction_), agents[e_], h},
                   scale, moved, sums);
  if (averaged_) mean_rows(x, y, shares.newest, agents[average_], sums.average);
  if (rows_ == nullptr) return;
  mean_rows(h, {}, shares.newest, agents[hbar_], sums.again.square);
  for (int l = 0; l < agents.lanes.count; ++l)
    sums.again.rows[l] = static_cast<double>(rows_->rows_drawn_again(agents.lanes.first + l));
}

}  // namespace affpcl
