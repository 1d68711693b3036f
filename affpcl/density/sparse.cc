#include "affpcl/density/sparse.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/kernels.h"

namespace affpcl {

const Params<SparseRatio::Config>& SparseRatio::params() {
  static const Params<Config> kParams =
      Params<Config>()
          .add(&Config::linear, LinearRatio::params(), {"shrink", "ridge"})
          .add({{"penalty", &Config::penalty, "sparse ratios: hard threshold (l0) or soft (l1)"},
                {"threshold", &Config::threshold,
                 "sparse ratios: in units of sqrt(2 ln p) standard deviations", at_least(0)}});
  return kParams;
}

void SparseRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  LinearRatio::declare(problem, agent, centre, sum);
  eta_ = agent.add("ratio_eta", p());
  norm_ = centre.add("ratio_norm", 1);
}

// Gershgorin: no row of the scaled matrix sums to more.
void SparseRatio::centre(const Round& round, Mean mean, Centre centre) const {
  trace(mean[sum_G_]);
  begin_round(round, centre);
  accumulate(centre, psi0_, mean[sum_psi_].p);
  accumulate(centre, G_, mean[sum_G_]);
  const double* G = centre[G_].p;
  double& norm = centre.mutate(norm_)[0] = 1;
  for (int a = 0; a < p(); ++a) {
    double row = 0;
    for (int b = 0; b < p(); ++b) {
      const double both = G[a * p() + a] * G[b * p() + b];
      if (both > 0) row += std::abs(G[a * p() + b]) / std::sqrt(both);
    }
    norm = std::max(norm, row);
  }
}

void SparseRatio::correct(const Block& block, Mean mean, Out rg) const {
  const Agents agents = block.agents;
  const Centre centre = block.centre;
  const Out eta = agents[eta_], V = block.scratch().rows(p()), G_eta = block.scratch().rows(p());
  const double *G = centre[G_].p, norm = centre[norm_].p[0];
  differences(agents, centre, block.scratch(), V, block.scratch().rows(1));
  kernels::matvec(G, p(), p(), eta, G_eta);
  double deviation[kLanes];  // of V_k, in units of sqrt(G_kk)
  const bool always = all_rounds(agents, centre, deviation);
  for (double& s : deviation) s = always ? 1 : std::sqrt(s);
  const double factor = threshold_ * std::sqrt(2 * std::log(std::max(p(), 2)));
  for (int k = 0; k < p(); ++k) {
    const double g = G[k * p() + k];
    if (!(g > 0)) continue;  // never seen: eta stays 0
    const double step = 1 / (norm * g), cut = factor * std::sqrt(g);
    for (int l = 0; l < kLanes; ++l) {
      const double z = eta.row(k)[l] + step * (V.row(k)[l] - G_eta.row(k)[l]);
      eta.row(k)[l] =
          penalty_ == Penalty::kL0
              ? (std::abs(z) * g > deviation[l] * cut ? z : 0)
              : std::copysign(std::max(0.0, std::abs(z) - step * (deviation[l] * cut)), z);
    }
  }
  apply_eta(mean, eta, 1, rg);
}

void SparseRatio::eta(Agents agents, Centre, Scratch&, Out eta) const { copy(agents[eta_], eta); }

}  // namespace affpcl
