#include "affpcl/problem/estimation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/math/dense.h"
#include "affpcl/problem/agent_share.h"

namespace affpcl {
namespace {

constexpr double kRoot = std::numbers::sqrt2;

// h_r of one lane: 1, s, (s^2 - 1) / sqrt 2.
double feature(int r, int dim, In s, int lane) {
  if (r == 0) return 1;
  const double v = s.row((r - 1) % dim)[lane];
  return r <= dim ? v : (v * v - 1) / kRoot;
}

// E h_r of N(m, I), m being row (r - 1) mod dim.
double mean_feature(int r, int dim, In m, int lane) {
  if (r == 0) return 1;
  const double v = m.row((r - 1) % dim)[lane];
  return r <= dim ? v : v * v / kRoot;
}

// E h_r h_q: features of different coordinates are independent.
double mean_product(int r, int q, int dim, In m, int lane) {
  if (r == 0 || q == 0 || (r - 1) % dim != (q - 1) % dim)
    return mean_feature(r, dim, m, lane) * mean_feature(q, dim, m, lane);
  const double v = m.row((r - 1) % dim)[lane], v2 = v * v;
  if (r <= dim && q <= dim) return v2 + 1;
  if (r > dim && q > dim) return v2 * v2 / 2 + 2 * v2 + 1;
  return v * (v2 + 2) / kRoot;
}

// E of 1, s or (s^2 - 1) / sqrt 2 (orders 0 to 2) twice, of s ~ N(m, 1), times what the coordinate
// adds to |h|^2 where it is weighted. Five Gauss-Hermite points are exact to degree nine.
double coordinate_moment(double m, int u, int v, bool weighted) {
  const double root = std::sqrt(10.0), near = std::sqrt(5 - root), far = std::sqrt(5 + root),
               inner = (7 + 2 * root) / 60, outer = (7 - 2 * root) / 60;
  const double node[] = {0, near, -near, far, -far},
               weight[] = {8.0 / 15, inner, inner, outer, outer};
  double sum = 0;
  for (int k = 0; k < 5; ++k) {
    const double x = m + node[k], h[] = {1, x, (x * x - 1) / kRoot};
    sum += weight[k] * h[u] * h[v] * (weighted ? h[1] * h[1] + h[2] * h[2] : 1);
  }
  return sum;
}

// E |h|^2 h_r h_q of N(m, I).
double weighted_product(int r, int q, int dim, const double* m) {
  const auto order = [&](int f, int c) { return f == 0 || (f - 1) % dim != c ? 0 : 1 + (f > dim); };
  double sum = 0;
  for (int a = -1; a < dim; ++a) {  // |h|^2 = 1 + what every coordinate adds
    double product = 1;
    for (int c = 0; c < dim; ++c)
      if (c == a || order(r, c) > 0 || order(q, c) > 0)
        product *= coordinate_moment(m[c], order(r, c), order(q, c), c == a);
    sum += product;
  }
  return sum;
}

}  // namespace

const Params<Estimation::Config>& Estimation::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "numbers of a measurement point", between(1, 1000)},
      {"delta_env", &Config::delta_env,
       "knob of environment heterogeneity: designs of mean length delta_env * spread",
       between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "knob of objective heterogeneity: theta^i at distance delta_obj from theta_base",
       between(0, 1e6)},
      {"spread", &Config::spread, "unit of delta_env", between(0, 1e6)},
      {"noise", &Config::noise, "standard deviation of a response's own error", between(0, 1e6)},
      {"functionals", &Config::functionals,
       "what is estimated: the mean response, or E y and E s_a y (moments)"},
      {"environments", &Config::environments, "distinct designs; 0: one per agent",
       between(0, kMostAgents)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
  return kParams;
}

ProblemKind Estimation::kind() {
  return problem_kind_of<Estimation>(
      "estimation",
      "statistical estimation: means and linear functionals of a response under each agent's own "
      "sampling design");
}

Estimation::Estimation(const Config& config, std::uint64_t seed, std::uint32_t replicate,
                       const AgentShare& share)
    : config_(config), system_key_{seed, replicate, 0} {
  theta_base_ = random_direction(system_key_, 0, Purpose::kTheta, k(), 1);
  laws_ = NormalDensities(system_key_,
                          {.agents = config_.agents,
                           .distinct = config_.environments,
                           .dim = config_.dim,
                           .radius = config_.delta_env * config_.spread,
                           .first_central = config_.first_central},
                          {0, config_.dim}, share);
  theta_ = MadeStore(k(), config_.agents, share, [this](std::int64_t block, Out weights) {
    make_weights(block, weights, nullptr);
  });
  theta_mean_ =
      share.sum(config_.agents, theta_base_.size(), [this](std::int64_t block, double* sum) {
        make_weights(block, theta_.block(block)[Field{0, k()}], sum);
      });
  solve(share);
}

void Estimation::make_weights(std::int64_t block, Out weights, double* sum) const {
  const Lanes lanes = lanes_of(block, config_.agents);
  for (int l = 0; l < lanes.count; ++l) {
    const std::vector<double> own = theta(lanes.first + l);
    for (std::size_t r = 0; r < own.size(); ++r) {
      weights.row(static_cast<int>(r))[l] = own[r];
      if (sum != nullptr) sum[r] += own[r] / static_cast<double>(config_.agents);
    }
  }
}

std::vector<double> Estimation::theta(std::int64_t agent) const {
  const bool central = agent == 0 && config_.first_central;
  return weights_near(system_key_, theta_base_, agent, central ? 0 : config_.delta_obj);
}

Shape Estimation::shape() const { return {.agents = config_.agents, .d = d(), .k = k()}; }

void Estimation::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  laws_.keep(first_block, last_block);
  theta_.keep(first_block, last_block);
}

void Estimation::declare(Layout&, Layout& sample) const {
  sample.add("s", config_.dim);
  if (config_.noise > 0) sample.add("e", 1);
}

void Estimation::draw(const Draw& draw, Agents world, Out s) const {
  normals(draw.key, world.lanes, Purpose::kSample, 0, s);
  add_scaled({s.p, config_.dim, s.lanes}, 1, design(world.lanes));
}

// psi(s) y, where y is the first row.
void Estimation::lift(In s, Out b) {
  for (int r = 1; r < b.rows; ++r)
    for (int l = 0; l < b.lanes; ++l) b.row(r)[l] = s.row(r - 1)[l] * b.row(0)[l];
}

void Estimation::respond(Lanes lanes, In s, In theta, Out b) const {
  fill({b.p, 1, b.lanes}, 0);
  for (int r = 0; r < k(); ++r)
    for (int l = 0; l < lanes.count; ++l)
      b.row(0)[l] += feature(r, config_.dim, s, l) * theta.at(r, l);
}

void Estimation::objective(Lanes lanes, In s, Out b) const {
  respond(lanes, s, theta_.block(lanes.first / kLanes)[Field{0, k()}], b);
  if (config_.noise > 0)
    add_scaled({b.p, 1, b.lanes}, config_.noise, {s.row(config_.dim), 1, s.width});
  lift(s, b);
}

void Estimation::direction(Lanes, In, In b, In x, Scratch&, Out g) const {
  copy(x, g);
  subtract_objective(b, g);
}

void Estimation::Phi(Lanes lanes, In s, In theta, Scratch&, Out bhat) const {
  respond(lanes, s, theta, bhat);
  lift(s, bhat);
}

// psi_0 = 1: the first functional is the response itself.
void Estimation::coe(Lanes lanes, In s, In b, In, In bhat, Out g) const {
  for (int r = 0; r < k(); ++r)
    for (int l = 0; l < lanes.count; ++l)
      g.row(r)[l] = feature(r, config_.dim, s, l) * (bhat.row(0)[l] - b.row(0)[l]);
}

void Estimation::known(Lanes lanes, In s, Scratch& scratch, Out b0) const {
  Phi(lanes, s, {theta_mean_.data(), k(), 1}, scratch, b0);
}

void Estimation::second_moments(Lanes lanes, In theta, Out to) const {
  const In m = design(lanes);
  fill(to, 0);
  for (int r = 0; r < to.rows; ++r)
    for (int q = 0; q < k(); ++q)
      for (int l = 0; l < lanes.count; ++l)
        to.row(r)[l] += mean_product(r, q, config_.dim, m, l) * theta.at(q, l);
}

double Estimation::G_Phi() const {
  double largest = 0;
  Matrix M(static_cast<std::size_t>(k()), static_cast<std::size_t>(k()));
  for (std::int64_t e = 0; e < laws_.environments(); ++e) {
    for (int r = 0; r < k(); ++r)
      for (int q = 0; q < k(); ++q) M(r, q) = weighted_product(r, q, config_.dim, laws_.mean(e));
    largest = std::max(largest, symmetric_eigenvalues(M).back());
  }
  return std::sqrt(largest);
}

void Estimation::mean_apply(Lanes, In x, Out Ax) const { copy(x, Ax); }

// psi is the first rows of h.
void Estimation::mean_objective(Lanes lanes, Out b) const {
  second_moments(lanes, theta_.block(lanes.first / kLanes)[Field{0, k()}], b);
}

void Estimation::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  second_moments(lanes, theta, bhat);
}

void Estimation::mean_coe(Lanes lanes, In theta, Out g) const {
  const In own = theta_.block(lanes.first / kLanes)[Field{0, k()}];
  const Buffer space(static_cast<std::size_t>(k()) * kLanes);
  const Out off{space.data(), k(), g.lanes};
  for (int r = 0; r < k(); ++r)
    for (int l = 0; l < lanes.count; ++l) off.row(r)[l] = theta.at(r, l) - own.row(r)[l];
  second_moments(lanes, off, g);
}

}  // namespace affpcl
