#include "affpcl/method/fedem.h"

#include <algorithm>
#include <cmath>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<FedEm::Config>& FedEm::params() {
  static const Params<Config> kParams = {
      {"components", &Config::components, "number of common models", between(1, 1000)},
      {"temperature", &Config::temperature, "losses are divided by it: noise variance of a sample",
       above(0, 1e9)},
      {"memory", &Config::memory, "share of a round in an agent's mixture weights", above(0, 1)},
      {"start_scale", &Config::start_scale, "models start at start_scale N(0, I)", between(0, 1e6)},
  };
  return kParams;
}

MethodKind FedEm::kind() {
  return method_kind_of<FedEm>(
      "fedem", "each agent's mixture of several common models, by EM (Marfoq et al. 2021)");
}

void FedEm::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  d_ = setup.problem.shape().d;
  x_ = agent.add("x", d_);
  pi_ = agent.add("pi", config_.components);
  q_ = agent.add("q", config_.components);
  theta_ = centre.add("theta", config_.components * d_);
  moved_ = sum.add("moved", theta_.rows);
}

void FedEm::start(const Problem& problem, const Key& key, Centre centre) const {
  const std::vector<double> x0 = central_start(problem).x;
  const std::span<double> theta = centre.mutate(theta_);
  for (int m = 0; m < config_.components; ++m)
    for (int r = 0; r < d_; ++r)
      theta[static_cast<std::size_t>(m * d_ + r)] =
          x0[static_cast<std::size_t>(r)] +
          config_.start_scale * normal(key, m, Purpose::kMethod, static_cast<std::uint32_t>(r));
}

void FedEm::start(const Problem& problem, Agents agents) const {
  problem.start(agents.lanes, agents[x_]);
  fill(agents[pi_], 1.0 / config_.components);
}

void FedEm::responsibilities(Agents agents, In g, Out q) const {
  const Out pi = agents[pi_];
  double loss[kLanes];
  for (int m = 0; m < q.rows; ++m) {
    const In one{g.row(m * d_), d_, kLanes};
    dot(one, one, q.lanes, loss);
    for (int l = 0; l < q.lanes; ++l) q.row(m)[l] = loss[l] / (2 * config_.temperature);
  }
  for (int l = 0; l < agents.lanes.count; ++l) {
    double least = q.row(0)[l], total = 0;  // subtracted, so that the largest exponential is 1
    for (int m = 1; m < q.rows; ++m) least = std::min(least, q.row(m)[l]);
    for (int m = 0; m < q.rows; ++m)
      total += q.row(m)[l] = pi.row(m)[l] * std::exp(least - q.row(m)[l]);
    // The nearest component may have a weight of 0.
    for (int m = 0; m < q.rows; ++m) q.row(m)[l] = total > 0 ? q.row(m)[l] / total : pi.row(m)[l];
  }
}

void FedEm::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const Batch& batch = block.batch;
  const int M = config_.components;
  const Out moved = scratch.rows(theta_.rows), at = scratch.rows(theta_.rows),
            g = scratch.rows(theta_.rows), q = scratch.rows(M), mean_q = block.agents[q_];
  const auto component = [&](Out all, int m) { return Out{all.row(m * d_), d_, all.lanes}; };
  fill(moved, 0);
  fill(mean_q, 0);
  for (int k = 0; k < batch.steps; ++k) {
    copy(block.centre[theta_], at);
    add_scaled(at, 1, moved);
    for (int s = 0; s < batch.samples(k); ++s) {
      for (int m = 0; m < M; ++m)
        direction(block, k, {s, s + 1}, component(at, m), component(g, m));
      responsibilities(block.agents, g, q);
      add_scaled(mean_q, 1.0 / batch.all_samples(), q);
      const double alpha = block.central_step(k) / batch.samples(k);
      for (int m = 0; m < M; ++m) {
        scale(component(g, m), q.row(m), component(g, m));
        descend(component(moved, m), alpha, component(g, m));
      }
    }
  }
  message.add(moved_, moved);
}

void FedEm::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(theta_), mean[moved_]);
}

void FedEm::update(const Block& block, Mean) const {
  const Out x = block.agents[x_], pi = block.agents[pi_], q = block.agents[q_],
            part = block.scratch().rows(d_);
  const double* theta = block.centre[theta_].p;
  fill(x, 0);
  for (int m = 0; m < config_.components; ++m) {
    for (int l = 0; l < pi.lanes; ++l)
      pi.row(m)[l] += config_.memory * (q.row(m)[l] - pi.row(m)[l]);
    copy({theta + static_cast<std::ptrdiff_t>(m) * d_, d_, 1}, part);
    scale(part, pi.row(m), part);
    add_scaled(x, 1, part);
  }
}

}  // namespace affpcl
