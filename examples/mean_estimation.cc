#include "mean_estimation.h"

namespace affpcl::examples {

const Params<MeanEstimation::Config>& MeanEstimation::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents", between(1, 1e9)},
      {"dim", &Config::dim, "length of the mean", between(1, 1000)},
      {"spread", &Config::spread, "how far the agents' means lie apart", between(0, 1e6)},
  };
  return kParams;
}

ProblemKind MeanEstimation::kind() {
  return problem_kind_of<MeanEstimation>("mean_estimation",
                                         "each agent's own mean, from noisy samples");
}

MeanEstimation::MeanEstimation(const Config& config, std::uint64_t seed, std::uint32_t replicate)
    : config_(config), mean_(config.dim, config.agents) {
  for (std::int64_t b = 0; b < blocks_of(config_.agents); ++b) {
    const Agents agents = mean_.block(b);
    const Out m = agents[{0, config_.dim}];
    normals({seed, replicate, 0}, agents.lanes, Purpose::kEnvironment, 0, m);
    for (int i = 0; i < m.rows * kLanes; ++i) m.p[i] *= config_.spread;
  }
  solve();
}

void MeanEstimation::declare(Layout&, Layout& sample) const { sample.add("s", config_.dim); }

void MeanEstimation::draw(const Draw& draw, Agents world, Out s) const {
  normals(draw.key, world.lanes, Purpose::kSample, 0, s);
  add_scaled(s, 1, mean_.block(world.lanes.first / kLanes)[{0, config_.dim}]);
}

void MeanEstimation::objective(Lanes, In s, Out b) const { copy(s, b); }
void MeanEstimation::direction(Lanes, In, In b, In x, Scratch&, Out g) const {
  copy(x, g);
  subtract_objective(b, g);
}
void MeanEstimation::mean_apply(Lanes, In x, Out Ax) const { copy(x, Ax); }
void MeanEstimation::mean_objective(Lanes lanes, Out b) const {
  copy(mean_.block(lanes.first / kLanes)[{0, config_.dim}], b);
}

}  // namespace affpcl::examples
