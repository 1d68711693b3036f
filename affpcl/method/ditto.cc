#include "affpcl/method/ditto.h"

#include <algorithm>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<Ditto::Config>& Ditto::params() {
  static const Params<Config> kParams = {
      {"lambda", &Config::lambda, kPullDoc, between(0, 1e9)},
      {"form", &Config::published, kForms, kFormDoc},
  };
  return kParams;
}

MethodKind Ditto::kind() {
  return method_kind_of<Ditto>(
      "ditto", "a common model, and each agent's own pulled towards it (Li et al. 2021)");
}

void Ditto::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  v_ = agent.add("v", setup.problem.shape().d);
  common_.declare(setup, centre, sum);
  before_ = centre.add("w before", v_.rows);
}

void Ditto::centre(const Round&, Mean mean, Centre centre) const {
  std::copy_n(common_.w(centre).p, before_.rows, centre.mutate(before_).begin());
  common_.centre(mean, centre);
}

void Ditto::update(const Block& block, Mean) const {
  const In w = config_.published ? block.centre[before_] : common_.w(block.centre);
  local_steps(block, block.agents[v_], {config_.lambda, w});
}

}  // namespace affpcl
