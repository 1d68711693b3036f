#include "affpcl/algorithm/independent.h"

namespace affpcl {

MethodKind Independent::kind() {
  return {"independent", "every agent learns alone, from its own samples", {}, [](const Values&) {
            return std::make_unique<Independent>();
          }};
}

void Independent::declare(const Setup& setup, Layout& agent, Layout&, SumLayout&) {
  x_ = agent.add("x", setup.problem.shape().d);
}

void Independent::update(const Round& round, const Batch& batch, Agents agents, Centre,
                         Mean) const {
  const Out x = agents[x_], g = round.scratch.rows(x.rows);
  for (int k = 0; k < batch.steps; ++k) {
    residual(round, agents.lanes, batch, k, x, g);
    descend(x, round.step.agents(round.first + k, agents.lanes, round.scratch), g);
  }
}

}  // namespace affpcl
