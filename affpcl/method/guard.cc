#include "affpcl/method/guard.h"

#include <algorithm>
#include <cmath>

#include "affpcl/method/guard_rows.h"

namespace affpcl {
namespace {

// Step tau weighs tau^2: the share of step t in the mean of the first t.
double newest_share(double t) { return 6 * t / ((t + 1) * (2 * t + 1)); }

}  // namespace

void Guard::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  if (!on()) return;
  const Shape shape = setup.problem.shape();
  hbar_ = agent.add("guard_h", shape.d);
  means_ = agent.add("guard", GuardRow::kRows);
  const Recorded* recorded = setup.problem.facets().recorded;
  debias_ = mode_ == Mode::kFull && (recorded == nullptr || recorded->rows_drawn_again(0) == 0);
  if (!debias_) return;
  pool_ = centre.add("guard_pool", 1);
  sum_ = sum.add("guard", 2);
}

// |hbar|^2 and its part by chance, the variance of hbar.
void Guard::contribute(const Block& block, Message message) const {
  if (!debias_) return;
  const Out numbers = block.scratch().rows(2), m = block.agents[means_];
  const double *hh = m.row(GuardRow::kHH), *square = m.row(GuardRow::kSquare),
               *q = m.row(GuardRow::kChance);
  for (int l = 0; l < numbers.lanes; ++l) {
    const bool known = q[l] < 1;  // from the second step on
    numbers.row(0)[l] = known ? square[l] : 0;
    numbers.row(1)[l] = known ? std::max(0.0, hh[l] - square[l]) * q[l] / (1 - q[l]) : 0;
  }
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
  const Out m = agents[means_];
  const double* t = m.row(GuardRow::kSteps);
  alignas(64) double share[kLanes];
  for (int l = 0; l < h.lanes; ++l)  // agents of a block mostly have the same t
    share[l] = l > 0 && t[l] == t[l - 1] ? share[l - 1] : newest_share(t[l] + 1);
  guard_rows(g, h, agents[hbar_], debias_ ? block.centre[pool_].p[0] : 0, share, m);
}

std::vector<Tally> Guard::tallies() const {
  return on() ? std::vector<Tally>(3, Tally::kSum) : std::vector<Tally>{};
}

void Guard::report(Agents agents, Out rows) const {
  if (!on()) return;
  std::copy_n(agents[means_].row(GuardRow::kWeight), kLanes, rows.row(0));
  std::copy_n(agents[means_].row(GuardRow::kDebias), kLanes, rows.row(1));
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
