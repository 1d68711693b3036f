#include "affpcl/problem/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/problem/agent_share.h"
#include "affpcl/problem/normal_densities.h"

namespace affpcl {
namespace {

constexpr int kPoints = 16;  // draws of phi that the error is a mean over

}  // namespace

const Params<Network::Config>& Network::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "features", between(1, 1000)},
      {"hidden", &Config::hidden, "hidden units", between(1, 1000)},
      {"delta_env", &Config::delta_env, "environment heterogeneity: means of this length",
       between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "objective heterogeneity: an agent's network at this distance from a common one",
       between(0, 1e6)},
      {"noise", &Config::noise, "noise of the labels", between(0, 1e3)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
  return kParams;
}

ProblemKind Network::kind() {
  return problem_kind_of<Network>(
      "network", "a two-layer network for each agent: directions that are not monotone");
}

template <class Of>
void Network::put(std::int64_t block, Out rows, Of of) const {
  const Lanes lanes = lanes_of(block, config_.agents);
  for (int l = 0; l < lanes.count; ++l) {
    const std::vector<double> column = of(lanes.first + l);
    for (int r = 0; r < rows.rows; ++r) rows.row(r)[l] = column[static_cast<std::size_t>(r)];
  }
}

// x^c_*, where the agents' mean direction is 0, has no closed form: it is left open.
Network::Network(const Config& config, std::uint64_t seed, std::uint32_t replicate,
                 const AgentShare& share)
    : config_(config) {
  const Key key{seed, replicate, 0};
  const int D = unknowns();
  std::vector<double> base(static_cast<std::size_t>(D));
  normals_of(key, 0, Purpose::kTheta, base);
  start_.resize(base.size());
  normals_of(key, 0, Purpose::kSystemA, start_);
  for (double& x : start_) x *= 0.5;
  points_.resize(static_cast<std::size_t>(kPoints * config_.dim));
  normals_of(key, 0, Purpose::kFeatures, points_);
  truth_.xc.assign(base.size(), std::numeric_limits<double>::quiet_NaN());
  const auto apart = [this](std::int64_t i) { return !(i == 0 && config_.first_central); };
  truth_.x = MadeStore(D, config_.agents, share, [=, this](std::int64_t block, Out x) {
    put(block, x, [&](std::int64_t i) {
      return weights_near(key, base, i, apart(i) ? config_.delta_obj : 0);
    });
  });
  truth_.x.make_own(share);
  means_ = MadeStore(config_.dim, config_.agents, share, [=, this](std::int64_t block, Out m) {
    put(block, m, [&](std::int64_t i) {
      return random_direction(key, i, Purpose::kEnvironment, config_.dim,
                              apart(i) ? config_.delta_env : 0);
    });
  });
  means_.make_own(share);
}

void Network::declare(Layout&, Layout& sample) const {
  sample.add("phi", config_.dim);
  sample.add("y", 1);
}

void Network::forward(Lanes lanes, In phi, In x, Out tanhs, double* f) const {
  const int d = config_.dim, H = config_.hidden;
  double space[kLanes];
  std::fill_n(f, lanes.count, 0.0);
  for (int h = 0; h < H; ++h) {
    double* t = tanhs.rows > 0 ? tanhs.row(h) : space;
    dot(phi, {x.row(h * d), d, x.width}, lanes_to_write(lanes.count), t);
    for (int l = 0; l < lanes.count; ++l) {
      t[l] = std::tanh(t[l]);
      f[l] += x.at(H * d + h, l) * t[l];
    }
  }
}

void Network::draw(const Draw& draw, Agents world, Out s) const {
  const Lanes lanes = world.lanes;
  normals_about(means_.block(lanes.first / kLanes)[Field{0, config_.dim}], draw.key, lanes,
                Purpose::kSample, 0, s);
  double f[kLanes];
  forward(lanes, {s.p, config_.dim, kLanes}, truth_.x.block(lanes.first / kLanes)[{0, unknowns()}],
          {}, f);
  double* y = s.row(config_.dim);
  for (int l = 0; l < lanes.count; ++l) y[l] = f[l] + config_.noise * y[l];
}

void Network::direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const {
  const Scratch::Frame frame(scratch);
  const int d = config_.dim, H = config_.hidden;
  const Out t = scratch.rows(H);
  const In phi{s.p, d, s.width};
  double off[kLanes], slope[kLanes] = {};
  forward(lanes, phi, x, t, off);
  for (int l = 0; l < lanes.count; ++l) off[l] -= s.row(d)[l];
  for (int h = 0; h < H; ++h)
    for (int l = 0; l < lanes.count; ++l) g.row(H * d + h)[l] = off[l] * t.row(h)[l];
  for (int h = 0; h < H; ++h) {
    for (int l = 0; l < lanes.count; ++l)
      slope[l] = off[l] * x.at(H * d + h, l) * (1 - t.row(h)[l] * t.row(h)[l]);
    scale(phi, slope, {g.row(h * d), d, g.lanes});
  }
  subtract_objective(b, g);
}

void Network::error(Lanes lanes, In x, Scratch& scratch, Out one_row) const {
  const Scratch::Frame frame(scratch);
  const int d = config_.dim;
  const std::int64_t block = lanes.first / kLanes;
  const In truth = truth_.x.block(block)[{0, unknowns()}], mean = means_.block(block)[{0, d}];
  const Out phi = scratch.rows(d);
  double own[kLanes], best[kLanes];
  fill(one_row, 0);
  for (int q = 0; q < kPoints; ++q) {
    copy({points_.data() + static_cast<std::ptrdiff_t>(q) * d, d, 1}, phi);
    add_scaled(phi, 1, mean);
    forward(lanes, phi, x, {}, own);
    forward(lanes, phi, truth, {}, best);
    for (int l = 0; l < lanes.count; ++l)
      one_row.p[l] += (own[l] - best[l]) * (own[l] - best[l]) / kPoints;
  }
}

void Network::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  means_.keep(first_block, last_block);
}

}  // namespace affpcl
