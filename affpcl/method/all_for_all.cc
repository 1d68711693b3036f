#include "affpcl/method/all_for_all.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind AllForAll::kind() {
  return method_kind_of<AllForAll>(
      "all_for_all",
      "weighted directions of all agents, each at its own model, weights known (Even et al. 2022)");
}

void AllForAll::declare(const Setup& setup, Layout& agent, Layout&, SumLayout& sum) {
  weights_.declare(setup);
  x_ = agent.add("x", setup.problem.shape().d);
  xi_ = agent.add("xi", weights_.rank());
  moved_ = sum.add_product("moved", weights_.rank(), x_.rows);
  weight_ = sum.add("weight", weights_.rank());
}

void AllForAll::start(const Problem& problem, Agents agents) const {
  problem.start(agents.lanes, agents[x_]);
  weights_.shares(problem, agents, agents[xi_]);
}

void AllForAll::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const Out moved = scratch.rows(x_.rows), xi = block.agents[xi_];
  copy(block.agents[x_], moved);
  local_steps(block, moved);
  subtract(moved, block.agents[x_], moved);
  message.add(moved_, xi, moved);
  message.add(weight_, xi);
}

void AllForAll::update(const Block& block, Mean mean) const {
  const Out x = block.agents[x_], xi = block.agents[xi_];
  const double *moved = mean[moved_], *weight = mean[weight_].p;
  for (int e = 0; e < xi.rows; ++e, moved += x.rows) {
    if (weight[e] <= 0) continue;
    for (int r = 0; r < x.rows; ++r) {
      const double by = moved[r] / weight[e];
      for (int l = 0; l < block.lanes().count; ++l) x.row(r)[l] += xi.row(e)[l] * by;
    }
  }
}

}  // namespace affpcl
