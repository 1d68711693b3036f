#include "affpcl/density/counts.h"

#include <algorithm>

#include "affpcl/base/error.h"

namespace affpcl {

void CountRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  if (problem.ratio_cells() == nullptr)
    throw BadInput(
        "ratio = \"counts\" needs a problem with finitely many states; use \"linear\" instead");
  const int cells = problem.ratio_cells()->cells();
  declare_learnt(problem, cells, agent, centre, false);
  met_ = centre.add("ratio_met", cells + 1);
  M_ = sum.add_product("M", cells, d());
  counts_ = sum.add_product("counts", cells, 1);
}

void CountRatio::contribute(const Block& block, In s, In g, bool first, Message message) const {
  const Out cell = block.scratch().rows(1), own = tally(block.agents, first);
  block.problem().ratio_cells()->cell(block.lanes(), s, cell);
  each_lane(message.present(), [&](int l) {
    const int c = static_cast<int>(cell.p[l]);
    if (c < 0) return;
    own.row(c)[l] += 1;
    message.at(counts_, l)[c] += 1;
    double* M = message.at(M_, l) + static_cast<std::ptrdiff_t>(c) * d();
    for (int r = 0; r < d(); ++r) M[r] += g.at(r, l);
  });
}

void CountRatio::centre(const Round& round, Mean mean, Centre centre) const {
  begin_round(round, centre);
  accumulate(centre, psi0_, mean[counts_]);
  const double *M = mean[M_], *seen = centre[psi0_].p;
  const std::span<double> gbar = centre.mutate(gbar_), met = centre.mutate(met_);
  std::fill(gbar.begin(), gbar.end(), 0.0);
  int rank = 0;
  std::size_t cells = 0;
  for (int c = 0; c < p(); ++c) {
    rank += seen[c] > 0;
    const double* row = M + c * d();  // of a compressed sum it may come without its count
    if (mean[counts_][c] == 0 && std::all_of(row, row + d(), [](double x) { return x == 0; }))
      continue;
    met[++cells] = c;
    for (int r = 0; r < d(); ++r) gbar[static_cast<std::size_t>(r)] += M[c * d() + r];
  }
  met[0] = static_cast<double>(cells);
  centre.mutate(rank_)[0] = rank;
}

// N V of the cells that this round's samples are in; elsewhere N is 0.
void CountRatio::correct(const Block& block, Mean mean, Out rg) const {
  const Centre centre = block.centre;
  const Out V = block.scratch().rows(p()), weight = block.scratch().rows(1);
  differences(block.agents, centre, block.scratch(), V, weight);
  const double *seen = centre[psi0_].p, *met = centre[met_].p;
  copy(centre[gbar_], rg);
  for (int k = 1; k <= static_cast<int>(met[0]); ++k) {
    const int c = static_cast<int>(met[k]);
    if (seen[c] == 0) continue;
    const double* M = mean[M_] + static_cast<std::ptrdiff_t>(c) * d();
    double eta[kLanes];
    for (int l = 0; l < rg.lanes; ++l) eta[l] = weight.p[l] * V.row(c)[l] / seen[c];
    for (int r = 0; r < d(); ++r)
      for (int l = 0; l < rg.lanes; ++l) rg.row(r)[l] += eta[l] * M[r];
  }
}

void CountRatio::solve(Centre centre, In V, Out eta) const {
  const double* seen = centre[psi0_].p;
  for (int r = 0; r < p(); ++r) {
    const double weight = seen[r] > 0 ? 1 / seen[r] : 0;
    for (int l = 0; l < eta.lanes; ++l) eta.row(r)[l] = weight * V.row(r)[l];
  }
}

void CountRatio::own(const Block& block, In s, Out rho) const {
  const Out cell = block.scratch().rows(1), weights = block.scratch().rows(p());
  eta(block.agents, block.centre, block.scratch(), weights);
  block.problem().ratio_cells()->cell(block.lanes(), s, cell);
  for (int l = 0; l < block.lanes().count; ++l)
    rho.p[l] = cell.p[l] < 0 ? 1 : 1 + weights.row(static_cast<int>(cell.p[l]))[l];
}

}  // namespace affpcl
