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

// What round t needs of the weights of its means; agents of a block mostly have the same t.
struct Weights {
  double t = 0, older = 0, newest = 0;  // of the first t - 1 rounds, and of all
  double chance_older = 0, chance = 0;
  void at(double round) {
    if (round == t) return;
    t = round;
    older = newest_share(t - 1), newest = newest_share(t);
    chance_older = squared_shares(t - 1), chance = squared_shares(t);
  }
};

// Stein's constant, as a share of the degrees of freedom: up to 2 - 4 / freedom no bias is harmful.
double stein(double freedom) { return std::clamp(2 - 4 / freedom, 1.0, 1.5); }

// The part of `total` that `expected` does not explain, in [0, 1].
double excess(double expected, double total) { return total > expected ? 1 - expected / total : 0; }

}  // namespace

struct Combination::Sums : CombinationSums {
  double mean[kLanes] = {};     // |hbar|^2
  double average[kLanes] = {};  // |mean of delta|^2
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
  numbers_ = agent.add("combination", kRows);
  if (!averaged_) return;
  average_ = agent.add("combination_delta", d);
  of_average_ = agent.add("combination_average", kAverageRows);
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
  c_.weigh(block_.agents, alpha_, sums);
  const Agents agents = block_.agents;
  combine_rows(x, agents[c_.y_], c_.share(agents).p, agents[c_.z_]);
}

void Combination::take_in(const Walk& walk, In x, Sums& sums) const {
  const Agents agents = walk.block_.agents;
  const Out y = agents[y_], h = agents[h_], alpha = walk.alpha_;
  const bool one_step = walk.block_.batch.steps == 1;
  const double* count = agents[numbers_].row(kCount);
  alignas(64) double scale[kLanes], moved[kLanes], share[kLanes];
  for (int l = 0; l < y.lanes; ++l) {
    scale[l] = one_step ? 1 : alpha.p[l] > 0 ? -1 / alpha.p[l] : 0;
    moved[l] = one_step ? -alpha.p[l] : 1;
    share[l] = newest_share(count[l] + 1);
  }
  combination_rows({x, y, walk.before_, one_step ? walk.g_ : walk.own_,
                    one_step ? walk.h_ : In(walk.correction_), agents[e_], h},
                   scale, moved, sums);
  if (hbar_.rows > 0) mean_rows(h, {}, share, agents[hbar_], sums.mean);
  if (averaged_) mean_rows(x, y, share, agents[average_], sums.average);
}

void Combination::weigh(Agents agents, In alpha, const Sums& sums) const {
  const Out m = agents[numbers_];
  const double d = y_.rows;
  Weights weights;
  for (int l = 0; l < agents.lanes.count; ++l) {
    const auto number = [&](Row row) -> double& { return m.row(row)[l]; };
    const double t = number(kCount) += 1, before = number(kSquare), now = sums.square[l];
    number(kSquare) = now;
    number(kShare) = 0;
    if (t < 2) continue;
    weights.at(t);
    const auto take = [&](Row row, double share, double x) {
      number(row) += share * (x - number(row));
    };
    const double older = weights.older, newest = weights.newest, hh_now = sums.hh[l];
    take(kEE, older, sums.ee[l]);
    take(kEH, older, sums.eh[l]);
    take(kHH, older, hh_now);
    take(kEH2, older, sums.eh[l] * sums.eh[l]);
    take(kEHHH, older, sums.eh[l] * hh_now);
    take(kHH2, older, hh_now * hh_now);
    take(kUphill, older, sums.uphill[l]);
    take(kUphill2, older, sums.uphill[l] * sums.uphill[l]);
    const double eh = number(kEH), hh = number(kHH), square_step = alpha.p[l] * alpha.p[l],
                 rho = before > 0 ? std::min(1.0, sums.carried[l] / before) : 1,
                 step = square_step * hh_now;
    const double own_step = square_step * number(kEE),
                 own = number(kOwnNoise) = rho * (t == 2 ? own_step : number(kOwnNoise)) + own_step;
    const double noise_before = t == 2 ? step : number(kNoise);
    number(kNoise) = rho * noise_before + step;
    take(kNoiseMean, newest, number(kNoise));
    take(kSquareMean, newest, now);
    take(kLost, newest, 1 - rho);
    double bias = averaged_ ? bias_of_average(agents, l, before, noise_before, sums) : 0;
    if (!(hh > 0) || !(eh < 0) || !std::isfinite(now)) continue;

    const double chance_of_means = weights.chance_older,
                 relaxed = number(kLost) / 2 / weights.chance;  // times that the means span
    if (!averaged_)
      bias = excess(stein(d * (1 + relaxed)) * number(kNoiseMean), number(kSquareMean));
    const std::int64_t again =
        rows_ != nullptr ? rows_->rows_drawn_again(agents.lanes.first + l) : 0;
    // The share of bias that is not chance.
    const double counted = again > 0 ? excess(hh / static_cast<double>(again), sums.mean[l]) : 1;
    const double chance_uphill = std::sqrt(chance_of_means * number(kUphill2)),
                 z = chance_uphill > 0 ? number(kUphill) / chance_uphill : 0;
    const double c = -eh / hh;
    // Of the regression of -<e, h> on |h|^2 without a constant: the mean square of what is left.
    const double residual = number(kEH2) + c * (2 * number(kEHHH) + c * number(kHH2));
    if (!std::isfinite(residual)) continue;
    const double w = c * excess(chance_of_means * std::max(0.0, residual), eh * eh) *
                     (1 - counted * bias) * std::clamp(1 - counted * z, 0.0, 1.0);
    const double reach = std::sqrt(1 - counted * excess(4 * own, w * w * now));
    number(kShare) = std::clamp(w * reach, 0.0, 1.0);  // |z - y|^2 <= 4 N_y
  }
}

// The energy that noise brings to the mean of delta, by the recursion of the mean:
//   |m'|^2 = (1 - s)^2 |m|^2 + 2 s (1 - s) <m, delta'> + s^2 |delta'|^2,    s the newest share,
// where <m, delta'> is <m, delta> of the round before, but for what the dynamics took off.
double Combination::bias_of_average(Agents agents, int l, double before, double noise_before,
                                    const Sums& sums) const {
  const Out m = agents[numbers_], a = agents[of_average_];
  const double t = m.row(kCount)[l], older = newest_share(t - 1), newest = newest_share(t);
  double &cross = a.row(kCross)[l], &noise = a.row(kNoiseOfAverage)[l];
  if (t == 2) noise = noise_before;
  const double carried = before > 0 ? std::clamp(sums.cross[l] / before, -1.0, 1.0) : 1;
  cross = carried * ((1 - older) * cross + older * noise_before);
  noise = (1 - newest) * (1 - newest) * noise + 2 * newest * (1 - newest) * cross +
          newest * newest * m.row(kNoise)[l];
  return excess(stein(y_.rows) * noise, sums.average[l]);
}

}  // namespace affpcl
