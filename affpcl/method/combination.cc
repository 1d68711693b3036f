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
double excess(double expected, double total) {
  return total > expected ? 1 - expected / total : 0;
}

}  // namespace

struct Combination::Sums {
  double eh[kLanes] = {}, hh[kLanes] = {};           // differences of successive e and h
  double uphill[kLanes] = {};                        // <delta, g(y)>, both before the round
  double square[kLanes] = {}, carried[kLanes] = {};  // |delta|^2, and had there been no h
  double mean[kLanes] = {};                          // |hbar|^2
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
  hbar_ = agent.add("combination_mean", d);
  numbers_ = agent.add("combination", kRows);
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
  const Out y = agents[y_], e = agents[e_], h = agents[h_], hbar = agents[hbar_];
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
      double& mean = hbar.row(r)[l];
      mean += share[l] * (h_now - mean);
      e.row(r)[l] = g_now;
      h.row(r)[l] = h_now;
      sums.eh[l] += de * dh / 2;
      sums.hh[l] += dh * dh / 2;
      sums.uphill[l] += walk.before_.row(r)[l] * g_now;
      sums.square[l] += delta * delta;
      sums.carried[l] += (delta - moved) * (delta - moved);
      sums.mean[l] += mean * mean;
    }
}

void Combination::weigh(Agents agents, In alpha, const Sums& sums) const {
  const Out m = agents[numbers_];
  const double d = y_.rows;
  for (int l = 0; l < agents.lanes.count; ++l) {
    double &eh = m.row(kEH)[l], &hh = m.row(kHH)[l], &noise = m.row(kNoise)[l],
           &noise_mean = m.row(kNoiseMean)[l], &square_mean = m.row(kSquareMean)[l],
           &lost = m.row(kLost)[l];
    const double t = m.row(kCount)[l] += 1, before = m.row(kSquare)[l], now = sums.square[l];
    m.row(kSquare)[l] = now;
    m.row(kShare)[l] = 0;
    if (t < 2) continue;
    const double share = newest_share(t - 1), chance_of_means = squared_shares(t - 1);
    double &eh2 = m.row(kEH2)[l], &uphill = m.row(kUphill)[l], &uphill2 = m.row(kUphill2)[l];
    eh += share * (sums.eh[l] - eh);
    eh2 += share * (sums.eh[l] * sums.eh[l] - eh2);
    hh += share * (sums.hh[l] - hh);
    uphill += share * (sums.uphill[l] - uphill);
    uphill2 += share * (sums.uphill[l] * sums.uphill[l] - uphill2);
    const double step = alpha.p[l] * alpha.p[l] * hh,
                 rho = before > 0 ? std::min(1.0, sums.carried[l] / before) : 1;
    noise = rho * (t == 2 ? step : noise) + step;
    noise_mean += newest_share(t) * (noise - noise_mean);
    square_mean += newest_share(t) * (now - square_mean);
    lost += newest_share(t) * (1 - rho - lost);
    if (!(hh > 0) || !std::isfinite(now)) continue;

    const std::int64_t again =
        rows_ != nullptr ? rows_->rows_drawn_again(agents.lanes.first + l) : 0;
    const double chance = again > 0 ? hh / static_cast<double>(again) : 0,
                 counted = excess(chance, sums.mean[l]),  // the share of bias that is not chance
                 relaxed = lost / 2 / squared_shares(t);  // relaxation times that the means span
    double bias = excess(stein(d * (1 + relaxed)) * noise_mean, square_mean);
    if (averaged_) bias = std::max(bias, excess(stein(d) * hh * squared_shares(t), sums.mean[l]));
    const double limit = std::sqrt(1 - counted * excess(4 * noise, now));  // |z - y|^2 <= 4 c^2 N
    const double chance_uphill = std::sqrt(chance_of_means * uphill2),
                 z = chance_uphill > 0 ? uphill / chance_uphill : 0,
                 c = -eh / hh * excess(chance_of_means * eh2, eh * eh);
    m.row(kShare)[l] = std::clamp(
        c * std::min(1 - counted * bias, limit) * std::clamp(2 - counted * z, 0.0, 1.0), 0.0, 1.0);
  }
}

}  // namespace affpcl
