#include "affpcl/density/linear.h"

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/density/inverse.h"
#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {
constexpr double kRenew = 1.02;  // G by so much larger: time for a new inverse (decision 009)
}

const Params<LinearRatio::Config>& LinearRatio::params() {
  static const Params<Config> kParams =
      Params<Config>()
          .add(&Config::learnt, LearntRatio::params())
          .add(&Config::features, FeatureConfig::params())
          .add({{"ridge", &Config::ridge,
                 "linear ratios: share of the Gram matrix' diagonal that is added to it",
                 at_least(0)}});
  return kParams;
}

void LinearRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  psi_ = make_features(features_config_, problem);
  const int p = psi_->p(), d = problem.shape().d;
  declare_learnt(problem, p, agent, centre);
  G_ = centre.add("ratio_G", waiting(p * p));
  W_ = centre.add("ratio_W", p * p);
  trace_ = centre.add("ratio_trace", 2);
  sum_gbar_ = sum.add("gbar", d);
  sum_psi_ = sum.add("psi", p);
  sum_M_ = sum.add_product("M", p, d);
  sum_G_ = sum.add_product("G", p, p);
}

Out LinearRatio::features(const Block& block, In s) const {
  const Out psi = block.scratch().rows(p());
  (*psi_)(block.problem(), block.lanes(), s, psi);
  return psi;
}

void LinearRatio::add(Message message, In psi, In g) const {
  message.add(sum_gbar_, g);
  message.add(sum_M_, psi, g);
  message.add(sum_G_, psi, psi);
}

void LinearRatio::contribute(const Block& block, In s, In g, bool first, Message message) const {
  const Agents agents = block.agents;
  Out psi;
  if (first && past()) {  // straight to where it waits
    begin_round(agents);
    add_scaled(agents[own_], 1, agents[fresh_]);
    psi = agents[fresh_];
    (*psi_)(block.problem(), agents.lanes, s, psi);
  } else {
    psi = features(block, s);
    add_scaled(tally(agents, first), 1, psi);
  }
  message.add(sum_psi_, psi);
  add(message, psi, g);
}

void LinearRatio::apply_eta(Mean mean, In eta, double constant, Out rg) const {
  const double* M = mean[sum_M_];
  const In gbar = mean[sum_gbar_];
  for (int r = 0; r < d(); ++r) {
    std::fill_n(rg.row(r), kLanes, constant * gbar.p[r]);
    for (int k = 0; k < p(); ++k) {
      const double m = M[k * d() + r];
      for (int l = 0; l < kLanes; ++l) rg.row(r)[l] += m * eta.row(k)[l];
    }
  }
}

double LinearRatio::trace(const double* G) const {
  double sum = 0;
  for (int k = 0; k < p(); ++k) sum += G[k * p() + k];
  if (!std::isfinite(sum))
    throw BadInput("a feature of the ratio is not finite, or too large, at a sample of this run");
  return sum;
}

void LinearRatio::centre(const Round& round, Mean mean, Centre centre) const {
  trace(mean[sum_G_]);
  begin_round(round, centre);
  accumulate(centre, psi0_, mean[sum_psi_].p);
  accumulate(centre, G_, mean[sum_G_]);
  double *W = centre.mutate(W_).data(), *N = centre.mutate(N_).data();
  const double* G = centre[G_].p;
  const std::span<double> traces = centre.mutate(trace_);  // of the G that W inverts; of the last G
  const double now = trace(G);
  if (now >= kRenew * traces[0]) {
    generalised_inverse(G, p(), ridge_, round.scratch, W);
    traces[0] = now;
  } else {
    for (int k = 0; k < p() * p(); ++k) W[k] *= traces[1] / now;
  }
  traces[1] = now;
  double& rank = centre.mutate(rank_)[0] = 0;
  for (int k = 0; k < p() * p(); ++k) rank += W[k] * G[k];  // tr(W G): less than p with a ridge
  std::copy_n(mean[sum_gbar_].p, d(), centre.mutate(gbar_).data());
  const double* M = mean[sum_M_];
  for (int r = 0; r < d(); ++r)
    for (int k = 0; k < p(); ++k) {
      double sum = 0;
      for (int j = 0; j < p(); ++j) sum += W[k * p() + j] * M[j * d() + r];
      N[r * p() + k] = sum;
    }
}

void LinearRatio::solve(Centre centre, In V, Out eta) const {
  kernels::matvec(centre[W_].p, p(), p(), V, eta);
}

void LinearRatio::square(Centre centre, In V, Scratch&, Out X2) const {
  kernels::quadratic(centre[W_].p, V, X2);
}

void LinearRatio::own(const Block& block, In s, Out rho) const {
  const Out psi = features(block, s), weights = block.scratch().rows(p());
  eta(block.agents, block.centre, block.scratch(), weights);
  fill(rho, 1);
  for (int k = 0; k < p(); ++k)
    for (int l = 0; l < kLanes; ++l) rho.p[l] += psi.row(k)[l] * weights.row(k)[l];
}

}  // namespace affpcl
