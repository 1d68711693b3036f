#include "affpcl/density/learnt.h"

#include <algorithm>

#include "affpcl/math/kernels.h"

namespace affpcl {

const Params<LearntRatio::Config>& LearntRatio::params() {
  static const Params<Config> kParams = {
      {"counting", &Config::counting,
       "learnt ratios: from the samples before this round, or with this round's"},
      {"shrink",
       &Config::shrink,
       {"none", "james-stein"},
       "learnt ratios: pull rho to 1 as far as the samples cannot tell it from 1"},
  };
  return kParams;
}

void LearntRatio::declare_learnt(const Problem& problem, int p, Layout& agent, Layout& centre,
                                 bool dense) {
  own_ = agent.add("ratio_own", p);
  own_rounds_ = agent.add("ratio_own_rounds", 1);
  if (past()) fresh_ = agent.add("ratio_fresh", p);
  rounds_ = centre.add("ratio_rounds", 2);
  psi0_ = centre.add("ratio_psi0", waiting(p));
  rank_ = centre.add("ratio_rank", 1);
  gbar_ = centre.add("ratio_gbar", problem.shape().d);
  if (dense) N_ = centre.add("ratio_N", problem.shape().d * p);
}

void LearntRatio::begin_round(Agents agents) const {
  double* rounds = agents[own_rounds_].p;
  for (int l = 0; l < kLanes; ++l) rounds[l] += 1;
}

void LearntRatio::begin_round(const Round& round, Centre centre) const {
  const std::span<double> rounds = centre.mutate(rounds_);
  rounds[0] += 1;
  rounds[1] = 1 / static_cast<double>(round.count_present());
}

Out LearntRatio::tally(Agents agents, bool first) const {
  if (first) begin_round(agents);
  if (!past()) return agents[own_];
  if (first) {
    add_scaled(agents[own_], 1, agents[fresh_]);
    fill(agents[fresh_], 0);
  }
  return agents[fresh_];
}

void LearntRatio::accumulate(Centre centre, Field sum, const double* now) const {
  const std::span<double> all = centre.mutate(sum);
  const std::size_t rows = all.size() / (past() ? 2 : 1);
  for (std::size_t r = 0; r < rows; ++r) {
    all[r] += past() ? all[rows + r] : now[r];
    if (past()) all[rows + r] = now[r];
  }
}

bool LearntRatio::all_rounds(Agents agents, Centre centre, double* often) const {
  const double rounds = centre[rounds_].p[0], *own_rounds = agents[own_rounds_].p,
               unused = past() ? 1 : 0;
  bool all = true;
  for (int l = 0; l < agents.lanes.count; ++l) all &= own_rounds[l] == rounds;
  for (int l = 0; l < kLanes; ++l)
    often[l] = own_rounds[l] > unused ? (rounds - unused) / (own_rounds[l] - unused) : 0;
  return all;
}

void LearntRatio::differences(Agents agents, Centre centre, Scratch& scratch, Out V,
                              Out weight) const {
  double often[kLanes];
  const bool everyone = all_rounds(agents, centre, often);
  fill(weight, 1);
  if (everyone) {
    subtract(agents[own_], centre[psi0_], V);
  } else {
    const Out own = agents[own_];
    const double* psi0 = centre[psi0_].p;
    for (int r = 0; r < V.rows; ++r)
      for (int l = 0; l < V.lanes; ++l)
        V.row(r)[l] = often[l] > 0 ? often[l] * own.row(r)[l] - psi0[r] : 0;
  }
  const double excess = std::max(0.0, centre[rank_].p[0] - 3), least = centre[rounds_].p[1];
  if (!config_.shrink || excess == 0 || (everyone && least == 1)) return;
  const Out X2 = scratch.rows(1);
  square(centre, V, scratch, X2);
  for (int l = 0; l < V.lanes; ++l) {
    const double chance = std::max(0.0, excess * ((everyone ? 1 : often[l]) - least));
    weight.p[l] = X2.p[l] > chance ? 1 - chance / X2.p[l] : 0;
  }
}

void LearntRatio::square(Centre centre, In V, Scratch& scratch, Out X2) const {
  const Out eta = scratch.rows(p());
  solve(centre, V, eta);
  dot(V, eta, X2.lanes, X2.p);
}

void LearntRatio::correct(const Block& block, Mean, Out rg) const {
  const Centre centre = block.centre;
  const Out V = block.scratch().rows(p()), weight = block.scratch().rows(1);
  differences(block.agents, centre, block.scratch(), V, weight);
  kernels::matvec(centre[N_].p, d(), p(), V, rg);
  scale(rg, weight.p, centre[gbar_], rg);
}

void LearntRatio::eta(Agents agents, Centre centre, Scratch& scratch, Out eta) const {
  const Out V = scratch.rows(p()), weight = scratch.rows(1);
  differences(agents, centre, scratch, V, weight);
  solve(centre, V, eta);
  scale(eta, weight.p, eta);
}

}  // namespace affpcl
