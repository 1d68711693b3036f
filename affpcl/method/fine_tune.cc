#include "affpcl/method/fine_tune.h"

#include <cmath>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<FineTune::Config>& FineTune::params() {
  static const Params<Config> kParams = {
      {"together", &Config::together, "share of the steps spent on the common model",
       between(0, 1)},
  };
  return kParams;
}

MethodKind FineTune::kind() {
  return method_kind_of<FineTune>("fine_tune",
                                  "FedAvg first, then every agent alone from the common model");
}

void FineTune::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  switch_at_ = std::llround(config_.together * static_cast<double>(setup.steps));
  x_ = agent.add("x", setup.problem.shape().d);
  common_.declare(setup, centre, sum);
}

void FineTune::contribute(const Block& block, Message message) const {
  if (together(block.round)) common_.contribute(block, message);
}

void FineTune::update(const Block& block, Mean) const {
  if (together(block.round)) return copy(common_.w(block.centre), block.agents[x_]);
  local_steps(block, block.agents[x_]);
}

}  // namespace affpcl
