#include "affpcl/method/correction.h"

#include "affpcl/base/error.h"

namespace affpcl {

void ImportanceCorrection::declare(const Setup& setup, Layout& agent, Layout& centre,
                                   SumLayout& sum) {
  d_ = setup.problem.shape().d;
  gc_ = agent.add("gc", setup.period * d_);
  const Densities* densities = setup.problem.densities();
  if (setup.partial && ratio_->needs_densities() && densities != nullptr && !densities->has_parts())
    throw BadInput(
        "this problem's densities are known against the mixture of all agents only: with absent "
        "agents use a learnt ratio");
  if (setup.partial && ratio_->against_all() && setup.batch > 1) {
    batch_ = setup.batch;
    each_ = agent.add("gc_each", setup.period * setup.batch * d_);
  }
  if (at_server()) return ratio_->declare(setup.problem, agent, centre, sum);
  if (ratio_->learns())
    throw BadInput(
        "correction = \"client\" needs a ratio that is not learnt: the sums it is learnt from do "
        "not travel");
  SumLayout nothing;  // the ratio weighs what stays with the agent
  ratio_->declare(setup.problem, agent, centre, nothing);
  gbar_ = sum.add("gbar", d_);
}

Out ImportanceCorrection::begin(const Block& block, int k, Out space) const {
  const Out gc = step(block, k);
  if (in_place(block.batch)) return gc;
  fill(gc, 0);
  return space;
}

void ImportanceCorrection::contribute(const Block& block, int k, int m, Out g, Out sent,
                                      Message message) const {
  const In s = block.batch.s(k, m);
  const Out gc = step(block, k);
  const int samples = block.batch.samples(k);
  const double share = 1.0 / block.batch.all_samples();
  if (at_server()) {
    if (g.p != gc.p) add_scaled(gc, 1.0 / samples, g);
    if (each_.rows > 0) copy(g, sample(block, k, m));
    if (share != 1)
      for (int i = 0; i < g.rows * kLanes; ++i) sent.p[i] *= share;
    return ratio_->contribute(block, s, sent, k + m == 0, message);
  }
  const Out rho = block.scratch().rows(1);
  ratio_->own(block, s, rho);
  for (int r = 0; r < g.rows; ++r)
    for (int l = 0; l < block.lanes().count; ++l) {
      gc.row(r)[l] += g.row(r)[l] / (rho.p[l] * samples);
      g.row(r)[l] *= share;
    }
  message.add(gbar_, g);
}

void ImportanceCorrection::end(const Block& block, In x, Message message) const {
  if (at_server()) ratio_->end(block, x, message);
}

void ImportanceCorrection::centre(const Round& round, Mean mean, Centre centre) const {
  ratio_->centre(round, mean, centre);
}

void ImportanceCorrection::corrected(const Block& block, Mean mean, Out rg) const {
  if (!at_server()) return copy(mean[gbar_], rg);
  ratio_->correct(block, mean, rg);
  const Round& round = block.round;
  if (ratio_->against_all() && round.count_present() < block.problem().shape().agents)
    reweigh(block, rg);
}

// rg holds the mean over those present.
void ImportanceCorrection::reweigh(const Block& block, Out rg) const {
  const Scratch::Frame frame(block.scratch());
  const Batch& batch = block.batch;
  const auto n = static_cast<double>(block.problem().shape().agents),
             m = static_cast<double>(block.round.count_present());
  const Out own = block.scratch().rows(d_), rho = block.scratch().rows(1);
  const double share = 1.0 / batch.all_samples();
  fill(own, 0);
  fill(rho, 1);
  for (int k = 0; k < batch.steps; ++k)
    for (int j = 0; j < batch.samples(k); ++j) {
      if (m > 1) ratio_->own(block, batch.s(k, j), rho);
      const In g = sample(block, k, j);
      for (int r = 0; r < d_; ++r)
        for (int l = 0; l < own.lanes; ++l) own.row(r)[l] += share * rho.p[l] * g.row(r)[l];
    }
  if (m == 1) return copy(own, rg);
  const double mean_weight = m * (n - 1) / (n * (m - 1)), own_weight = (n - m) / (n * (m - 1));
  for (int r = 0; r < d_; ++r)
    for (int l = 0; l < own.lanes; ++l)
      rg.row(r)[l] = mean_weight * rg.row(r)[l] - own_weight * own.row(r)[l];
}

}  // namespace affpcl
