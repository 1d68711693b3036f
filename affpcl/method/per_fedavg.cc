#include "affpcl/method/per_fedavg.h"

#include <algorithm>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<PerFedAvg::Config>& PerFedAvg::params() {
  static const Params<Config> kParams = {
      {"form",
       &Config::hessian_free,
       {"first_order", "hessian_free"},
       "without second derivatives, or with differences of directions in their place"},
      {"beta", &Config::beta, "step on an agent's own data; 0: the step size", between(0, 1e6)},
      {"delta", &Config::delta, "hessian_free: relative length of the difference",
       between(1e-9, 1)},
  };
  return kParams;
}

MethodKind PerFedAvg::kind() {
  return method_kind_of<PerFedAvg>(
      "per_fedavg", "a common model that is good after one own gradient step (Fallah et al. 2020)");
}

void PerFedAvg::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  x_ = agent.add("x", setup.problem.shape().d);
  w_ = centre.add("w", x_.rows);
  moved_ = sum.add("moved", x_.rows);
}

void PerFedAvg::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(w_), central_start(problem).x);
}

// h = (I - beta H_i(w)) g_i(w - beta g_i(w))
void PerFedAvg::meta_direction(const Block& block, int k, In w, Out h) const {
  Scratch& scratch = block.scratch();
  const Scratch::Frame frame(scratch);
  const Out y = scratch.rows(h.rows), g = scratch.rows(h.rows);
  const int n = block.batch.samples(k), parts = std::min(n, 3);
  const auto part = [&](int p) { return SampleRange{p * n / parts, (p + 1) * n / parts}; };
  const SampleRange adapt = part(0), meta = part(parts > 1 ? 1 : 0),
                    curve = part(parts > 2 ? 2 : 0);
  direction(block, k, adapt, w, g);
  copy(w, y);
  descend(y, beta(block, k), g);
  direction(block, k, meta, y, h);
  if (!config_.hessian_free) return;
  const Out ahead = scratch.rows(h.rows);
  copy(w, y);
  add_scaled(y, config_.delta, h);
  direction(block, k, curve, y, ahead);
  add_scaled(y, -2 * config_.delta, h);
  direction(block, k, curve, y, g);
  subtract(ahead, g, g);
  add_scaled(h, -beta(block, k) / (2 * config_.delta), g);
}

void PerFedAvg::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const Out moved = scratch.rows(x_.rows), w = scratch.rows(x_.rows), h = scratch.rows(x_.rows);
  fill(moved, 0);
  for (int k = 0; k < block.batch.steps; ++k) {
    copy(block.centre[w_], w);
    add_scaled(w, 1, moved);
    meta_direction(block, k, w, h);
    descend(moved, block.central_step(k), h);
  }
  message.add(moved_, moved);
}

void PerFedAvg::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(w_), mean[moved_]);
}

void PerFedAvg::update(const Block& block, Mean) const {
  const int last = block.batch.steps - 1;
  const Out x = block.agents[x_], g = block.scratch().rows(x.rows);
  direction(block, last, block.centre[w_], g);
  copy(block.centre[w_], x);
  descend(x, beta(block, last), g);
}

}  // namespace affpcl
