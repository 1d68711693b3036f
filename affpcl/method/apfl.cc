#include "affpcl/method/apfl.h"

#include <algorithm>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<Apfl::Config>& Apfl::params() {
  static const Params<Config> kParams = {
      {"mix", &Config::mix, "weight of the agent's own model; where it starts if adaptive",
       between(0, 1)},
      {"adaptive", &Config::adaptive, "each agent learns its weight by gradient steps"},
  };
  return kParams;
}

MethodKind Apfl::kind() {
  return method_kind_of<Apfl>(
      "apfl", "a mixture of each agent's own model and a common one (Deng et al. 2020)");
}

void Apfl::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  v_ = agent.add("v", d);
  x_ = agent.add("x", d);
  mix_ = agent.add("mix", 1);
  common_.declare(setup, centre, sum);
  before_ = centre.add("w before", d);
}

void Apfl::start(const Problem& problem, Agents agents) const {
  problem.start(agents.lanes, agents[v_]);
  copy(agents[v_], agents[x_]);
  fill(agents[mix_], config_.mix);
}

void Apfl::centre(const Round&, Mean mean, Centre centre) const {
  std::copy_n(common_.w(centre).p, before_.rows, centre.mutate(before_).begin());
  common_.centre(mean, centre);
}

void Apfl::mix(Agents agents, In w) const {
  const Out x = agents[x_];
  const double* a = agents[mix_].p;
  for (int r = 0; r < x.rows; ++r)
    for (int l = 0; l < agents.lanes.count; ++l)
      x.row(r)[l] = w.at(r, l) + a[l] * (agents[v_].row(r)[l] - w.at(r, l));
}

// The steps of v and of a, both along g = g_i(x) and from a of before.
void Apfl::move(const Block& block, int k, In w, In g) const {
  Scratch& scratch = block.scratch();
  const Out a = block.agents[mix_], step = scratch.rows(1), gap = scratch.rows(g.rows);
  const In alpha = block.step_sizes(k);
  double along[kLanes];
  subtract(block.agents[v_], w, gap);
  dot(gap, g, gap.lanes, along);
  for (int l = 0; l < gap.lanes; ++l) step.p[l] = alpha.at(0, l) * a.p[l];
  descend(block.agents[v_], step, g);
  if (!config_.adaptive) return;
  for (int l = 0; l < gap.lanes; ++l)
    a.p[l] = std::clamp(a.p[l] - alpha.at(0, l) * along[l], 0.0, 1.0);
}

void Apfl::update(const Block& block, Mean) const {
  Scratch& scratch = block.scratch();
  const Out w = scratch.rows(x_.rows), g = scratch.rows(x_.rows);
  copy(block.centre[before_], w);
  for (int k = 0; k < block.batch.steps; ++k) {
    const Scratch::Frame frame(scratch);
    mix(block.agents, w);
    direction(block, k, block.agents[x_], g);
    move(block, k, w, g);
    direction(block, k, w, g);
    descend(w, block.central_step(k), g);
  }
  mix(block.agents, common_.w(block.centre));
}

void Apfl::report(Agents agents, Out rows) const {
  copy(agents[mix_], {rows.row(0), 1, rows.lanes});
  fill({rows.row(1), 1, rows.lanes}, 1);
}

void Apfl::conclude(std::span<const double> tallies, std::span<double> columns) const {
  columns[0] = tallies[0] / tallies[1];
}

}  // namespace affpcl
