#include "affpcl/method/guard.h"

#include <algorithm>
#include <cmath>

#include "affpcl/method/guard_rows.h"

namespace affpcl {
namespace {

// Step tau weighs tau^2. The share of step t in the mean of the first t, and the sum of the squared
// shares: what the variance of a mean is of the variance of one.
double newest_share(double t) { return 6 * t / ((t + 1) * (2 * t + 1)); }
double squared_shares(double t) {
  return 6 * (3 * t * t + 3 * t - 1) / (5 * t * (t + 1) * (2 * t + 1));
}

}  // namespace

void Guard::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  if (!on()) return;
  const Shape shape = setup.problem.shape();
  hbar_ = agent.add("guard_h", shape.d);
  means_ = agent.add("guard", kRows);
  const Recorded* recorded = setup.problem.facets().recorded;
  debias_ = mode_ == Mode::kFull && (recorded == nullptr || recorded->rows_drawn_again(0) == 0);
  if (!debias_) return;
  pool_ = centre.add("guard_pool", 1);
  sum_ = sum.add("guard", 2);
}

void Guard::evidence(Agents agents, double* variance) const {
  const Out m = agents[means_];
  const double *hh = m.row(kHH), *square = m.row(kSquare), *steps = m.row(kSteps);
  for (int l = 0; l < m.lanes; ++l) {
    const double q = squared_shares(std::max(steps[l], 2.0));
    variance[l] = steps[l] < 2 ? 0 : std::max(0.0, hh[l] - square[l]) * q / (1 - q);
  }
}

void Guard::contribute(const Block& block, Message message) const {
  if (!debias_) return;
  const Out numbers = block.scratch().rows(2);
  const double *square = block.agents[means_].row(kSquare), *steps = block.agents[means_].row(kSteps);
  evidence(block.agents, numbers.row(1));
  for (int l = 0; l < numbers.lanes; ++l) numbers.row(0)[l] = steps[l] < 2 ? 0 : square[l];
  message.add(sum_, numbers);
}

void Guard::centre(const Round& round, Mean mean, Centre centre) const {
  if (!debias_) return;
  const double numbers =
      static_cast<double>(round.count_present()) * static_cast<double>(hbar_.rows);
  const double tolerance = 1 + 3.2 * std::sqrt(2 / numbers);
  centre.mutate(pool_)[0] = std::max(0.0, mean[sum_].p[0] - tolerance * mean[sum_].p[1]);
}

void Guard::apply(const Block& block, In g, Out h) const {
  if (!on()) return;
  const Agents agents = block.agents;
  const int lanes = h.lanes;
  const Out hbar = agents[hbar_], m = agents[means_];
  double *gh = m.row(kGH), *hh = m.row(kHH), *c = m.row(kWeight), *s = m.row(kDebias),
         *t = m.row(kSteps);
  std::fill_n(s, lanes, 0.0);
  if (debias_) {
    double variance[kLanes];
    evidence(agents, variance);
    const double B2 = block.centre[pool_].p[0];
    if (B2 > 0)
      for (int l = 0; l < lanes; ++l) s[l] = B2 / (B2 + variance[l] / 5);
  }
  for (int l = 0; l < lanes; ++l)  // as if one step more had said c = 1
    c[l] = hh[l] > 0 ? std::clamp((hh[l] - t[l] * gh[l]) / ((t[l] + 1) * hh[l]), 0.0, 1.0) : 1;

  GuardSums now;
  alignas(64) double share[kLanes];
  for (int l = 0; l < lanes; ++l) share[l] = newest_share(t[l] + 1);
  guard_rows(g, h, hbar, c, s, share, now);
  for (int l = 0; l < lanes; ++l) {
    gh[l] += share[l] * (now.gh[l] - gh[l]);
    hh[l] += share[l] * (now.hh[l] - hh[l]);
    t[l] += 1;
  }
  std::copy_n(now.square, lanes, m.row(kSquare));
}

std::vector<Tally> Guard::tallies() const {
  return on() ? std::vector<Tally>(3, Tally::kSum) : std::vector<Tally>{};
}

void Guard::report(Agents agents, Out rows) const {
  if (!on()) return;
  std::copy_n(agents[means_].row(kWeight), kLanes, rows.row(0));
  std::copy_n(agents[means_].row(kDebias), kLanes, rows.row(1));
  std::fill_n(rows.row(2), kLanes, 1.0);
}

std::vector<std::string> Guard::columns() const {
  return on() ? std::vector<std::string>{"guard_weight", "guard_debias"}
              : std::vector<std::string>{};
}

void Guard::conclude(std::span<const double> tallies, std::span<double> columns) {
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k] = tallies[k] / tallies[2];
}

}  // namespace affpcl
