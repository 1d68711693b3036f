#include "affpcl/density/counts.h"

#include <algorithm>

#include "affpcl/base/error.h"

namespace affpcl {

void CountRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  const int cells = problem.ratio_cells();
  if (cells == 0)
    throw BadInput(
        "ratio = \"counts\" needs a problem with finitely many states; use \"linear\" instead");
  declare_learnt(problem, cells, agent, centre);
  M_ = sum.add_product("M", cells, d());
  counts_ = sum.add_product("counts", cells, 1);
}

void CountRatio::contribute(const Round& round, In s, In g, Agents agents, Centre,
                            Message message) const {
  const Out cell = round.scratch.rows(1), own = tally(agents);
  round.problem.ratio_cell(agents.lanes, s, cell);
  for (int l = 0; l < agents.lanes.count; ++l) {
    const int c = static_cast<int>(cell.p[l]);
    own.row(c)[l] += 1;
    message.at(counts_)[c] += 1;
    double* M = message.at(M_) + static_cast<std::ptrdiff_t>(c) * d();
    for (int r = 0; r < d(); ++r) M[r] += g.row(r)[l];
  }
}

void CountRatio::centre(const Round&, Mean mean, Centre centre) const {
  accumulate(centre, psi0_, mean[counts_]);
  const double *M = mean[M_], *seen = centre[psi0_].p;
  double *gbar = centre.mutate(gbar_).data(), *N = centre.mutate(N_).data();
  std::fill_n(gbar, d(), 0.0);
  int rank = 0;
  for (int c = 0; c < p(); ++c) {
    rank += seen[c] > 0;
    for (int r = 0; r < d(); ++r) {
      gbar[r] += M[c * d() + r];
      N[r * p() + c] = seen[c] > 0 ? M[c * d() + r] / seen[c] : 0;
    }
  }
  centre.mutate(rank_)[0] = rank;
}

void CountRatio::solve(Centre centre, In V, Out eta) const {
  const double* seen = centre[psi0_].p;
  for (int r = 0; r < p(); ++r) {
    const double weight = seen[r] > 0 ? 1 / seen[r] : 0;
    for (int l = 0; l < kLanes; ++l) eta.row(r)[l] = weight * V.row(r)[l];
  }
}

void CountRatio::own(const Round& round, In s, Agents agents, Centre centre, Out rho) const {
  const Out cell = round.scratch.rows(1), weights = round.scratch.rows(p());
  eta(agents, centre, round.scratch, weights);
  round.problem.ratio_cell(agents.lanes, s, cell);
  for (int l = 0; l < agents.lanes.count; ++l)
    rho.p[l] = 1 + weights.row(static_cast<int>(cell.p[l]))[l];
}

}  // namespace affpcl
