#include "affpcl/method/drift_monitor.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/statistics.h"

namespace affpcl {
namespace {

constexpr std::int64_t kLooks = 4;  // rounds in which weights are looked at
constexpr double kFewest = 100;     // below so many numbers no test is made
constexpr double kTiny = 1e-290;
constexpr double kRounding = 1e-13;  // of rg and g^{c->i}, relative: a smaller h is no drift
constexpr int kTrajectorySpan = 32;

}  // namespace

void DriftMonitor::declare(const Setup& setup, Layout& agent) {
  n_ = static_cast<double>(setup.problem.shape().agents);
  steps_ = setup.steps;
  period_ = setup.period;
  every_ = std::max<std::int64_t>(1, setup.steps / setup.period / kLooks);
  tally_ = agent.add("watch", kRows);
  h_ = agent.add("drift_h", setup.problem.shape().d);
  Layout world, sample;
  setup.problem.declare(world, sample);
  span_ = world.rows() > 0 ? kTrajectorySpan : 1;
  part_ = agent.add("drift_part", 2);
}

void DriftMonitor::weigh(const Block& block, const Ratio& ratio) const {
  if (!looks(block)) return;
  const Out rho = block.scratch().rows(1), t = block.agents[tally_];
  ratio.own(block, block.batch.s(0, 0), rho);
  for (int l = 0; l < block.lanes().count; ++l) {
    t.row(kWeights)[l] += 1;
    t.row(kWeightSum)[l] += rho.p[l];
    t.row(kOutside)[l] += rho.p[l] < 0 || rho.p[l] > n_ * (1 + 1e-12);
    t.row(kLargest)[l] = std::max(t.row(kLargest)[l], rho.p[l]);
  }
}

void DriftMonitor::follow(const Block& block, In rg, In gc, Out h) const {
  const Agents agents = block.agents;
  alignas(64) double along[kLanes], square[kLanes];
  difference(rg, gc, h, agents[h_], along, square);
  if (looks(block)) {
    double rg2[kLanes], gc2[kLanes], *size = agents[tally_].row(kSize);
    dot(rg, rg, h.lanes, rg2);
    dot(gc, gc, h.lanes, gc2);
    for (int l = 0; l < h.lanes; ++l) size[l] = std::max(size[l], rg2[l] + gc2[l]);
  }
  if (2 * block.round.first < steps_) return;
  const Out t = agents[tally_];
  double *sum_z = agents[part_].row(0), *steps = agents[part_].row(1);
  double *count = t.row(kCount), *s1 = t.row(kS1), *s2 = t.row(kS2), *s3 = t.row(kS3);
  for (int l = 0; l < h.lanes; ++l) {
    sum_z[l] += along[l] / std::sqrt(square[l] + kTiny);
    steps[l] += 1;
  }
  for (int l = 0; l < h.lanes; ++l) {  // no branches: several lanes at a time
    const double full = steps[l] < span_ ? 0 : 1;
    const double z = full * sum_z[l] / span_;
    sum_z[l] *= 1 - full;
    steps[l] *= 1 - full;
    count[l] += full;
    s1[l] += z;
    s2[l] += z * z;
    s3[l] += z * z * z;
  }
}

std::vector<Tally> DriftMonitor::tallies() {
  std::vector<Tally> all(kRows, Tally::kSum);
  all[kLargest] = all[kSize] = Tally::kLargest;
  return all;
}

std::vector<std::string> DriftMonitor::columns() {
  return {"ess", "weight_max", "weight_outside", "drift", "drift_z"};
}

void DriftMonitor::conclude(std::span<const double> t, std::span<double> columns) {
  columns[0] = t[kWeightSum] > 0 ? std::min(1.0, t[kWeights] / t[kWeightSum]) : 0;
  columns[1] = t[kLargest];
  columns[2] = t[kOutside] / t[kWeights];
  columns[3] = t[kS1] / t[kCount];
  const bool rounding = !(std::abs(t[kS1]) > kRounding * std::sqrt(t[kSize]) * t[kCount]);
  columns[4] = t[kCount] < kFewest ? std::nan("")
               : rounding          ? 0
                                   : skewed_t(t[kCount], t[kS1], t[kS2], t[kS3]);
}

}  // namespace affpcl
