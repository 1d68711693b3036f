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
  w_ = centre.add("w", x_.rows);
  moved_ = sum.add("moved", x_.rows);
}

void FineTune::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(w_), problem.start_xc());
}

void FineTune::start(const Problem& problem, Agents agents) const {
  start_agents(problem, agents, x_);
}

void FineTune::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                          Message message) const {
  if (together(round))
    message.add(moved_, local_displacement(round, agents.lanes, batch, centre[w_]));
}

void FineTune::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(w_), mean[moved_]);
}

void FineTune::update(const Round& round, const Batch& batch, Agents agents, Centre centre,
                      Mean) const {
  if (together(round)) return copy(centre[w_], agents[x_]);
  local_steps(round, agents.lanes, batch, agents[x_]);
}

}  // namespace affpcl
