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

// As w moves, so does w + u_i, whether the agent is present or not; u_i moves if it is.
void Residual::update(const Block& block, Mean mean) const {
  const Out x = block.agents[x_];
  add_scaled(x, 1, common_.moved(mean));
  if (block.present() == all_lanes(block.lanes().count)) return local_steps(block, x);
  const Out stepped = block.scratch().rows(x.rows);
  copy(x, stepped);
  local_steps(block, stepped);
  each_lane(block.present(), [&](int l) {
    for (int r = 0; r < x.rows; ++r) x.row(r)[l] = stepped.row(r)[l];
  });
}

}  // namespace affpcl
