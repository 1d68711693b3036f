#include "pull_to_mean.h"

#include "affpcl/method/local_steps.h"

namespace affpcl::examples {

const Params<PullToMean::Config>& PullToMean::params() {
  static const Params<Config> kParams = {
      {"share", &Config::share, "share of the way to the mean, each round", between(0, 1)},
  };
  return kParams;
}

MethodKind PullToMean::kind() {
  return method_kind_of<PullToMean>("pull_to_mean",
                                    "each agent alone, then a share of the way towards the mean");
}

void PullToMean::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  x_ = agent.add("x", d);
  mean_ = centre.add("mean", d);
  sent_ = sum.add("x", d);
}

// What each agent adds to the sum.
void PullToMean::contribute(const Block& block, Message message) const {
  message.add(sent_, block.agents[x_]);
}

// What becomes of the mean: all agents share it.
void PullToMean::centre(const Round&, Mean mean, Centre centre) const {
  const std::span<double> m = centre.mutate(mean_);
  for (std::size_t r = 0; r < m.size(); ++r) m[r] = mean[sent_].p[r];
}

// Each agent's step.
void PullToMean::update(const Block& block, Mean) const {
  const Out x = block.agents[x_], gap = block.scratch().rows(x.rows);
  local_steps(block, x);
  subtract(block.centre[mean_], x, gap);
  add_scaled(x, config_.share, gap);
}

}  // namespace affpcl::examples
