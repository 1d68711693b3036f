#include "mean_estimation.h"

#include <algorithm>
#include <cmath>

namespace affpcl::examples {
namespace {

// to = a b, entry by entry.
void times(In a, In b, int lanes, Out to) {
  for (int r = 0; r < to.rows; ++r)
    for (int l = 0; l < lanes; ++l) to.row(r)[l] = a.at(r, l) * b.at(r, l);
}

}  // namespace

const Params<MeanEstimation::Config>& MeanEstimation::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents", between(1, 1e9)},
      {"dim", &Config::dim, "length of the mean", between(1, 1000)},
      {"spread", &Config::spread, "how far the agents' measurements lie apart", between(0, 1e6)},
      {"tilt", &Config::tilt, "how far the agents' responses lie apart", between(0, 1e6)},
  };
  return kParams;
}

ProblemKind MeanEstimation::kind() {
  return problem_kind_of<MeanEstimation>("mean_estimation",
                                         "each agent's own mean, from noisy samples");
}

MeanEstimation::MeanEstimation(const Config& config, std::uint64_t seed, std::uint32_t replicate)
    : config_(config), mean_(config.dim, config.agents), theta_(config.dim, config.agents) {
  const Field whole{0, config_.dim};
  for (std::int64_t b = 0; b < blocks_of(config_.agents); ++b) {
    const Lanes lanes = mean_.block(b).lanes;
    const Out m = mean_.block(b)[whole], theta = theta_.block(b)[whole];
    normals({seed, replicate, 0}, lanes, Purpose::kEnvironment, 0, m);
    normals({seed, replicate, 0}, lanes, Purpose::kObjective, 0, theta);
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < config_.dim; ++r) {
        m.row(r)[l] *= config_.spread;
        theta.row(r)[l] = 1 + config_.tilt * theta.row(r)[l];
        all_.push_back(m.row(r)[l]);
      }
  }
  solve();
}

void MeanEstimation::declare(Layout&, Layout& sample) const { sample.add("s", config_.dim); }

void MeanEstimation::draw(const Draw& draw, Agents world, Out s) const {
  normals(draw.key, world.lanes, Purpose::kSample, 0, s);
  add_scaled(s, 1, mean(world.lanes));
}

void MeanEstimation::objective(Lanes lanes, In s, Out b) const {
  times(s, theta(lanes), lanes.count, b);
}
void MeanEstimation::direction(Lanes, In, In b, In x, Scratch&, Out g) const {
  copy(x, g);
  subtract_objective(b, g);
}

// Means: E s = m_i, and E s^2 = m_i^2 + 1 entry by entry.
void MeanEstimation::mean_apply(Lanes, In x, Out Ax) const { copy(x, Ax); }
void MeanEstimation::mean_objective(Lanes lanes, Out b) const {
  times(mean(lanes), theta(lanes), lanes.count, b);
}
void MeanEstimation::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  times(mean(lanes), theta, lanes.count, bhat);
}
void MeanEstimation::mean_coe(Lanes lanes, In theta, Out g) const {
  const In m = mean(lanes), own = this->theta(lanes);
  for (int r = 0; r < g.rows; ++r)
    for (int l = 0; l < lanes.count; ++l)
      g.row(r)[l] = (m.at(r, l) * m.at(r, l) + 1) * (theta.at(r, l) - own.at(r, l));
}

// The central objective: Phi(s) theta, and its direction Phi'(Phi theta - b). (The paper's own,
// Phi theta - b, needs E Phi > 0; means m_i need not be.)
void MeanEstimation::Phi(Lanes lanes, In s, In theta, Scratch&, Out bhat) const {
  times(s, theta, lanes.count, bhat);
}
void MeanEstimation::coe(Lanes lanes, In s, In b, In, In bhat, Out g) const {
  for (int r = 0; r < g.rows; ++r)
    for (int l = 0; l < lanes.count; ++l) g.row(r)[l] = s.at(r, l) * (bhat.at(r, l) - b.at(r, l));
}

// Densities: rho^e = mu^e / mean_j mu^j for every agent e, so that the one summed matrix
// M (agents x dim) = mean_j rho(s_j) g_j' holds the corrected direction of each in its row.
void MeanEstimation::ratios(In s, int lane, double* rho) const {
  double largest = -HUGE_VAL, sum = 0;
  for (int e = 0; e < p(); ++e) {
    rho[e] = 0;  // log mu^e(s) up to a constant
    for (int r = 0; r < config_.dim; ++r) {
      const double off = s.at(r, lane) - all_[static_cast<std::size_t>(e * config_.dim + r)];
      rho[e] -= off * off / 2;
    }
    largest = std::max(largest, rho[e]);
  }
  for (int e = 0; e < p(); ++e) sum += rho[e] = std::exp(rho[e] - largest);
  for (int e = 0; e < p(); ++e) rho[e] *= p() / sum;
}

void MeanEstimation::accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const {
  double* rho = scratch.numbers(static_cast<std::size_t>(p()));
  for (int l = 0; l < lanes.count; ++l) {
    ratios(s, l, rho);
    for (int e = 0; e < p(); ++e)
      for (int r = 0; r < g.rows; ++r) M[e * g.rows + r] += rho[e] * g.row(r)[l];
  }
}

void MeanEstimation::correct(Lanes lanes, const double* M, Out rg) const {
  for (int l = 0; l < lanes.count; ++l)
    for (int r = 0; r < rg.rows; ++r) rg.row(r)[l] = M[(lanes.first + l) * rg.rows + r];
}

void MeanEstimation::own(Lanes lanes, In s, Scratch& scratch, Out rho) const {
  double* all = scratch.numbers(static_cast<std::size_t>(p()));
  for (int l = 0; l < lanes.count; ++l) {
    ratios(s, l, all);
    rho.p[l] = all[lanes.first + l];
  }
}

}  // namespace affpcl::examples
