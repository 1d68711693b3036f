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
  w_ = centre.add("w", v_.rows);
  before_ = centre.add("w before", v_.rows);
  moved_ = sum.add("moved", v_.rows);
}

void Ditto::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(w_), problem.start_xc());
}

void Ditto::start(const Problem& problem, Agents agents) const {
  start_agents(problem, agents, v_);
}

void Ditto::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                       Message message) const {
  message.add(moved_, local_displacement(round, agents.lanes, batch, centre[w_]));
}

void Ditto::centre(const Round&, Mean mean, Centre centre) const {
  std::copy_n(centre[w_].p, w_.rows, centre.mutate(before_).begin());
  shift(centre.mutate(w_), mean[moved_]);
}

void Ditto::update(const Round& round, const Batch& batch, Agents agents, Centre centre,
                   Mean) const {
  const In w = centre[config_.published ? before_ : w_];
  local_steps(round, agents.lanes, batch, agents[v_], {config_.lambda, w});
}

}  // namespace affpcl
