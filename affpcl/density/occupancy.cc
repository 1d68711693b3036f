#include "affpcl/density/occupancy.h"

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"

namespace affpcl {

const Params<OccupancyRatio::Config>& OccupancyRatio::params() {
  static const Params<Config> kParams = {
      {"shrink",
       &Config::shrink,
       {"none", "james-stein"},
       "learnt ratios: pull rho to 1 as far as the samples cannot tell it from 1"},
  };
  return kParams;
}

void OccupancyRatio::declare(const Problem& problem, Layout& agent, Layout& centre,
                             SumLayout& sum) {
  if (occupancy(problem) == nullptr)
    throw BadInput(
        "ratio = \"policy\" needs agents that act; use \"exact\" or \"counts\" where they do not");
  if (sum.size() == 0)  // nothing travels with it: the correction is not the server's
    throw BadInput(
        "correction = \"client\" does not go with agents that act: the mixture of their laws has "
        "to travel");
  const int cells = occupancy(problem)->cells();
  q_ = agent.add("ratio_q", cells);
  visits_ = agent.add("ratio_visits", occupancy(problem)->counted());
  mix_ = centre.add("ratio_mix", cells);
  met_ = centre.add("ratio_met", cells + 1);
  sum_q_ = sum.add_product("q", cells, 1);
  M_ = sum.add_product("M", cells, problem.shape().d);
  hits_ = sum.add_product("hits", cells, 1);
  n_ = static_cast<double>(problem.shape().agents);
  if (!shrink_) return;
  f_ = centre.add("ratio_visits0", visits_.rows);
  sum_f_ = sum.add_product("visits", visits_.rows, 1);
}

void OccupancyRatio::contribute(const Block& block, In s, In g, bool, Message message) const {
  const Agents agents = block.agents;
  const Occupancy& laws = *occupancy(block.problem());
  const Out index = block.scratch().rows(1);
  laws.cell(agents.lanes, s, index);
  each_lane(message.present(), [&](int l) {
    const int c = static_cast<int>(index.p[l]);
    double* M = message.at(M_, l) + static_cast<std::ptrdiff_t>(c) * M_.d;
    for (int r = 0; r < M_.d; ++r) M[r] += g.at(r, l);
    message.at(hits_, l)[c] += 1;
  });
  if (visits_.rows == 0) return;
  laws.visit(agents.lanes, s, index);
  for (int l = 0; l < agents.lanes.count; ++l)
    agents[visits_].row(static_cast<int>(index.p[l]))[l] += 1;
}

void OccupancyRatio::end(const Block& block, In x, Message message) const {
  const Agents agents = block.agents;
  Out visits = agents[visits_];
  if (shrink_) {
    message.add(Field{sum_f_.at, f_.rows}, visits);
    visits = block.scratch().rows(visits_.rows);
    shrink(block, visits);
  }
  occupancy(block.problem())->law(agents.lanes, x, visits, block.scratch(), agents[q_]);
  message.add(Field{sum_q_.at, q_.rows}, agents[q_]);
}

// The agent's visits, or in the first round what it has: there is no mean yet.
void OccupancyRatio::shrink(const Block& block, Out visits) const {
  const Out own = block.agents[visits_];
  const double* mean = block.centre[f_].p;
  double all = 0;
  int met = 0;
  for (int o = 0; o < own.rows; ++o) all += mean[o], met += mean[o] > 0;
  copy(own, visits);
  const double excess = std::max(0, met - 3) * (1 - 1 / n_);
  if (excess == 0) return;
  for (int l = 0; l < block.lanes().count; ++l) {
    double t = 0, X2 = 0;
    for (int o = 0; o < own.rows; ++o) t += own.row(o)[l];
    for (int o = 0; o < own.rows; ++o) {
      const double expected = mean[o] / all * t, off = own.row(o)[l] - expected;
      if (expected > 0) X2 += off * off / expected;
    }
    const double w = X2 > excess ? 1 - excess / X2 : 0;
    for (int o = 0; o < own.rows; ++o) {
      const double expected = mean[o] / all * t;
      visits.row(o)[l] = expected + w * (own.row(o)[l] - expected);
    }
  }
}

void OccupancyRatio::centre(const Round&, Mean mean, Centre centre) const {
  if (shrink_) std::copy_n(mean[sum_f_], f_.rows, centre.mutate(f_).data());
  std::copy_n(mean[sum_q_], q_.rows, centre.mutate(mix_).data());
  const std::span<double> met = centre.mutate(met_);
  std::size_t count = 0;
  for (int c = 0; c < q_.rows; ++c) {
    const double* M = mean[M_] + static_cast<std::ptrdiff_t>(c) * M_.d;
    if (mean[hits_][c] > 0 || std::any_of(M, M + M_.d, [](double x) { return x != 0; }))
      met[++count] = c;  // of a compressed sum M may come without its sample
  }
  met[0] = static_cast<double>(count);
}

void OccupancyRatio::correct(const Block& block, Mean mean, Out rg) const {
  const double *mix = block.centre[mix_].p, *met = block.centre[met_].p;
  const int count = static_cast<int>(met[0]), d = M_.d;
  const Out q = block.scratch().rows(count);  // of the cells that were met
  double* columns = block.scratch().numbers(static_cast<std::size_t>(count * d));  // M over the mix
  for (int k = 0; k < count; ++k) {
    const int c = static_cast<int>(met[k + 1]);
    // A sample that no agent's law allows counts for none.
    const double factor = mix[c] > 0 ? 1 / mix[c] : 0;
    const double* M = mean[M_] + static_cast<std::ptrdiff_t>(c) * d;
    for (int r = 0; r < d; ++r) columns[r * count + k] = M[r] * factor;
    copy({block.agents[q_].row(c), 1}, {q.row(k), 1, q.lanes});
  }
  kernels::matvec(columns, d, count, q, rg);
}

void OccupancyRatio::own(const Block& block, In s, Out rho) const {
  const Out index = block.scratch().rows(1);
  occupancy(block.problem())->cell(block.lanes(), s, index);
  for (int l = 0; l < block.lanes().count; ++l) {
    const int c = static_cast<int>(index.p[l]);
    const double mix = block.centre[mix_].p[c];
    rho.p[l] = mix > 0 ? block.agents[q_].row(c)[l] / mix : 0;
  }
}

}  // namespace affpcl
