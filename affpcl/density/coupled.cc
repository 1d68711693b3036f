#include "affpcl/density/coupled.h"

#include "affpcl/base/error.h"

namespace affpcl {

const Params<CoupledRatio::Config>& CoupledRatio::params() {
  static const Params<Config> kParams =
      Params<Config>().add(&Config::linear, LinearRatio::params(), {"shrink"});
  return kParams;
}

void CoupledRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  if (problem.facets().pairs == nullptr)
    throw BadInput(
        "ratio = \"coupled\" needs a problem that can draw coupled pairs of samples, which only a "
        "finite one can");
  LinearRatio::declare(problem, agent, centre, sum);
  drawn_ = agent.add("ratio_pairs", 1);
  Layout world, sample;
  problem.declare(world, sample);
  rows_ = sample.rows();
}

// The mean of psi stays out of the sum: V is the difference itself.
void CoupledRatio::contribute(const Block& block, In s, In g, bool first, Message message) const {
  const Agents agents = block.agents;
  add(message, features(block, s), g);
  const Out own = block.scratch().rows(rows_), mixed = block.scratch().rows(rows_);
  Key key = block.round.key;
  key.step = static_cast<std::uint32_t>(agents[drawn_].p[0]);
  block.problem().facets().pairs->draw_pair({key, {}}, agents.lanes, own, mixed);
  const Out sum = tally(agents, first);
  add_scaled(sum, 1, features(block, own));
  add_scaled(sum, -1, features(block, mixed));
  for (int l = 0; l < kLanes; ++l) agents[drawn_].p[l] += 1;
}

}  // namespace affpcl
