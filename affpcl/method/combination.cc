#include "affpcl/method/combination.h"

#include <algorithm>
#include <cmath>

namespace affpcl {
namespace {

// Round tau weighs tau^2. The share of round t in the mean of the first t, and the sum of the
// squared shares.
double newest_share(double t) { return 6 * t / ((t + 1) * (2 * t + 1)); }
double squared_shares(double t) {
  return 6 * (3 * t * t + 3 * t - 1) / (5 * t * (t + 1) * (2 * t + 1));
}

// Stein's constant, as a share of the degrees of freedom: up to 2 - 4 / freedom no bias is harmful.
double stein(double freedom) { return std::clamp(2 - 4 / freedom, 1.0, 1.5); }

// The part of `total` that `expected` does not explain, in [0, 1].
double excess(double expected, double total) { return total > expected ? 1 - expected / total : 0; }

}  // namespace

struct Combination::Sums {
  double ee[kLanes] = {}, eh[kLanes] = {}, hh[kLanes] = {};  // differences of successive e and h
  double uphill[kLanes] = {};                                // <delta, g(y)>, both before the round
  double square[kLanes] = {}, carried[kLanes] = {};          // |delta|^2, and had there been no h
  double cross[kLanes] = {};    // <delta before the round, delta had there been no h>
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
  g_ = scratch.rows(d), own_ = scratch.rows(d), correction_ = scratch.rows(d);
  alpha_ = scratch.rows(1), before_ = scratch.rows(d);
  subtract(x, block.agents[c_.y_], before_);
  fill(own_, 0);
  fill(correction_, 0);
  fill(alpha_, 0);
}

void Combination::Walk::step(int k, In h) {
  if (!c_.on_) return;
  const Out y = block_.agents[c_.y_];
  const In alpha = block_.step_sizes(k);
  direction(block_, k, y, g_);
  descend(y, alpha, g_);
  descend(own_, alpha, g_);
  descend(correction_, alpha, h);
  add_scaled(alpha_, 1, alpha);
}

void Combination::Walk::end(In x) {
  if (!c_.on_) return;
  Sums sums;
  c_.take_in(*this, x, sums);
  c_.weigh(block_.agents, alpha_, sums);
  const In y = block_.agents[c_.y_];
  const Out z = block_.agents[c_.z_];
  const double* w = c_.share(block_.agents).p;
  for (int r = 0; r < z.rows; ++r)  // an x that is not finite has w = 0
    for (int l = 0; l < z.lanes; ++l)
      z.row(r)[l] = w[l] > 0 ? y.row(r)[l] + w[l] * (x.at(r, l) - y.row(r)[l]) : y.row(r)[l];
}

void Combination::take_in(const Walk& walk, In x, Sums& sums) const {
  const Agents agents = walk.block_.agents;
  const Out own = walk.own_, correction = walk.correction_, alpha = walk.alpha_;
  const Out y = agents[y_], e = agents[e_], h = agents[h_], hbar = agents[hbar_],
            average = agents[average_];
  const double* count = agents[numbers_].row(kCount);
  double scale[kLanes], share[kLanes];
  for (int l = 0; l < y.lanes; ++l) {
    scale[l] = alpha.p[l] > 0 ? -1 / alpha.p[l] : 0;
    share[l] = newest_share(count[l] + 1);
  }
  for (int r = 0; r < y.rows; ++r)
    for (int l = 0; l < y.lanes; ++l) {
      const double moved = correction.row(r)[l], g_now = scale[l] * own.row(r)[l],
                   h_now = scale[l] * moved, de = g_now - e.row(r)[l], dh = h_now - h.row(r)[l],
                   delta = x.row(r)[l] - y.row(r)[l];
      e.row(r)[l] = g_now;
      h.row(r)[l] = h_now;
      sums.ee[l] += de * de / 2;
      sums.eh[l] += de * dh / 2;
      sums.hh[l] += dh * dh / 2;
      sums.uphill[l] += walk.before_.row(r)[l] * g_now;
      sums.square[l] += delta * delta;
      sums.carried[l] += (delta - moved) * (delta - moved);
      sums.cross[l] += walk.before_.row(r)[l] * (delta - moved);
    }
  for (int r = 0; r < hbar.rows; ++r)
    for (int l = 0; l < y.lanes; ++l) {
      double& mean = hbar.row(r)[l];
      mean += share[l] * (h.row(r)[l] - mean);
      sums.mean[l] += mean * mean;
    }
  for (int r = 0; r < average.rows; ++r)
    for (int l = 0; l < y.lanes; ++l) {
      double& mean = average.row(r)[l];
      mean += share[l] * (x.row(r)[l] - y.row(r)[l] - mean);
      sums.average[l] += mean * mean;
    }
}

void Combination::weigh(Agents agents, In alpha, const Sums& sums) const {
  const Out m = agents[numbers_];
  const double d = y_.rows;
  for (int l = 0; l < agents.lanes.count; ++l) {
    const auto number = [&](Row row) -> double& { return m.row(row)[l]; };
    const double t = number(kCount) += 1, before = number(kSquare), now = sums.square[l];
    number(kSquare) = now;
    number(kShare) = 0;
    if (t < 2) continue;
    const auto take = [&](Row row, double share, double x) {
      number(row) += share * (x - number(row));
    };
    const double older = newest_share(t - 1), newest = newest_share(t), hh_now = sums.hh[l];
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
    if (!(hh > 0) || !std::isfinite(now)) continue;

    const double chance_of_means = squared_shares(t - 1),
                 relaxed = number(kLost) / 2 / squared_shares(t);  // times that the means span
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
