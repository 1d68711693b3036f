#include "affpcl/density/fixed_point.h"

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

// The base keeps this round's psi apart from what came before only where the past counts; here it
// always must.
LinearRatio::Config apart(LinearRatio::Config config) {
  config.learnt = {.counting = LearntRatio::Counting::kPast, .shrink = false};
  return config;
}

}  // namespace

const Params<FixedPointRatio::Config>& FixedPointRatio::params() {
  static const Params<Config> kParams =
      Params<Config>()
          .add(&Config::linear, LinearRatio::params(), {"shrink", "ridge"})
          .add({{"form", &Config::form,
                 "fixed-point ratios: rho - 1 = psi' eta, or rho = psi' eta"}});
  return kParams;
}

FixedPointRatio::FixedPointRatio(const Config& config)
    : LinearRatio(apart(config.linear)),
      form_(config.form),
      current_(config.linear.learnt.counting == Counting::kCurrent) {}

void FixedPointRatio::declare(const Problem& problem, Layout& agent, Layout& centre,
                              SumLayout& sum) {
  LinearRatio::declare(problem, agent, centre, sum);
  eta_ = agent.add("ratio_eta", p());
  count_ = sum.add("samples", 1);
}

void FixedPointRatio::contribute(const Block& block, In s, In g, bool first,
                                 Message message) const {
  LinearRatio::contribute(block, s, g, first, message);
  const double one = 1;
  message.add(count_, {&one, 1, 1});
}

void FixedPointRatio::step(const Block& block, Mean mean) const {
  const double samples = mean[count_].p[0];
  const double alpha = block.round.step.ratio.at(block.round.first) / samples;
  const Out eta = block.agents[eta_], G_eta = block.scratch().rows(p());
  const In own = block.agents[fresh_], psi0 = mean[sum_psi_];
  kernels::matvec(mean[sum_G_], p(), p(), eta, G_eta);
  for (int k = 0; k < p(); ++k)
    for (int l = 0; l < kLanes; ++l)
      eta.row(k)[l] -= alpha * (G_eta.row(k)[l] - own.row(k)[l] + constant() * psi0.p[k]);
}

void FixedPointRatio::correct(const Block& block, Mean mean, Out rg) const {
  if (current_) step(block, mean);
  apply_eta(mean, block.agents[eta_], constant(), rg);
  if (!current_) step(block, mean);
}

void FixedPointRatio::own(const Block& block, In s, Out rho) const {
  const In psi = features(block, s), eta = block.agents[eta_];
  fill(rho, constant());
  for (int k = 0; k < p(); ++k)
    for (int l = 0; l < kLanes; ++l) rho.p[l] += psi.row(k)[l] * eta.row(k)[l];
}

void FixedPointRatio::eta(Agents agents, Centre, Scratch&, Out eta) const {
  copy(agents[eta_], eta);
}

}  // namespace affpcl
