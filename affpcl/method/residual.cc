#include "affpcl/method/residual.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind Residual::kind() {
  return method_kind_of<Residual>(
      "residual", "a common model, and on top of it what each agent's own samples add");
}

void Residual::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  x_ = agent.add("x", setup.problem.shape().d);
  common_.declare(setup, centre, sum);
}

// As w moves, so does w + u_i.
void Residual::update(const Block& block, Mean mean) const {
  const Out x = block.agents[x_];
  add_scaled(x, 1, common_.moved(mean));
  local_steps(block, x);
}

}  // namespace affpcl
