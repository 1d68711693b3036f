#include "affpcl/method/independent.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind Independent::kind() {
  return method_kind_of<Independent>("independent",
                                     "every agent learns alone, from its own samples");
}

void Independent::declare(const Setup& setup, Layout& agent, Layout&, SumLayout&) {
  x_ = agent.add("x", setup.problem.shape().d);
}

void Independent::update(const Block& block, Mean) const { local_steps(block, block.agents[x_]); }

}  // namespace affpcl
