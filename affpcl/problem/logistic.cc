#include "affpcl/problem/logistic.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

double sigma(double u) { return 1 / (1 + std::exp(-u)); }

// E sigma, E sigma', E sigma'', E sigma''' of u ~ N(mean, sd^2). The trapezoidal rule converges
// geometrically for an analytic function times a gaussian.
struct SigmaMoments {
  SigmaMoments(double mean, double sd) {
    constexpr double kReach = 9, kStep = 1.0 / 16;
    const double norm = kStep / std::sqrt(2 * std::numbers::pi);
    for (double z = -kReach; z <= kReach; z += kStep) {
      const double weight = norm * std::exp(-z * z / 2);
      const double p = sigma(mean + sd * z), first = p * (1 - p);
      value[0] += weight * p;
      value[1] += weight * first;
      value[2] += weight * first * (1 - 2 * p);
      value[3] += weight * first * (1 - 6 * first);
    }
  }
  double value[4] = {};
};

// With phi = m + z, z ~ N(0, I), and u = phi'x, by Stein's lemma:
//   E phi sigma(u)       = m E sigma + x E sigma'
//   E phi phi' sigma'(u) = (I + mm') E sigma' + (mx' + xm') E sigma'' + xx' E sigma'''
SigmaMoments moments_at(std::span<const double> m, std::span<const double> x, double noise = 0) {
  return {dot(m, x), std::sqrt(squared_norm(x) + noise * noise)};
}

}  // namespace

const Params<Logistic::Config>& Logistic::params() {
  static const Params<Config> kParams = {
      {"agents", &Config::agents, "number of agents n", between(1, kMostAgents)},
      {"dim", &Config::dim, "features, unknowns per agent d", between(1, 10000)},
      {"delta_env", &Config::delta_env,
       "knob of environment heterogeneity: means of length delta_env * spread", between(0, 100)},
      {"delta_obj", &Config::delta_obj,
       "knob of objective heterogeneity: w^i at distance delta_obj from w_base", between(0, 1e6)},
      {"spread", &Config::spread, "how far apart environments are at delta_env = 1",
       between(0, 1e6)},
      {"length", &Config::length, "length of w_base", between(0, 1e3)},
      {"noise", &Config::noise, "noise of the log-odds, which collaboration can average",
       between(0, 1e3)},
      {"labels", &Config::labels,
       "binary: 0 or 1; probability: without the noise of an agent's own labels"},
      {"environments", &Config::environments, "distinct environments; 0: one per agent",
       between(0, kMostAgents)},
      {"first_central", &Config::first_central, "the first agent sits at the centre"},
  };
  return kParams;
}

ProblemKind Logistic::kind() {
  return problem_kind_of<Logistic>(
      "logistic", "logistic regression on Gaussian features: directions that are not linear in x");
}

Logistic::Logistic(const Config& config, std::uint64_t seed, std::uint32_t replicate)
    : config_(config) {
  const int d = config_.dim;
  const std::int64_t n = config_.agents;
  const Key key{seed, replicate, 0};
  laws_ = NormalDensities(key,
                          {.agents = n,
                           .distinct = config_.environments,
                           .dim = d,
                           .radius = config_.delta_env * config_.spread,
                           .first_central = config_.first_central},
                          {0, d});
  const std::vector<double> base = random_direction(key, 0, Purpose::kTheta, d, config_.length);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<double> w = base;
    if (config_.delta_obj > 0 && !(i == 0 && config_.first_central)) {
      const std::vector<double> u =
          random_direction(key, i, Purpose::kObjective, d, config_.delta_obj);
      for (std::size_t r = 0; r < w.size(); ++r) w[r] += u[r];
    }
    weights_.insert(weights_.end(), w.begin(), w.end());
  }
  solve_truth();
}

std::span<const double> Logistic::m(std::int64_t agent) const {
  return {laws_.mean(agent % laws_.environments()), static_cast<std::size_t>(config_.dim)};
}

void Logistic::solve_truth() {
  const auto d = static_cast<std::size_t>(config_.dim), k = d + 2;
  Vector all(d), Ecy(k);  // means over agents of E phi y and E c y
  Matrix Ecc(k, k);
  const double share = 1 / static_cast<double>(config_.agents);
  truth_.x = Store(config_.dim, config_.agents);
  for (std::int64_t i = 0; i < config_.agents; ++i) {
    const std::span<const double> w(weights_.data() + i * config_.dim, d), mi = m(i);
    const SigmaMoments e = moments_at(mi, w, config_.noise);
    Vector own(d);
    Ecc(0, 0) += share;
    for (std::size_t r = 0; r < d; ++r) {
      own[r] = mi[r] * e.value[0] + w[r] * e.value[1];
      all[r] += share * own[r];
      Ecc(0, r + 1) += share * mi[r], Ecc(r + 1, 0) += share * mi[r];
      Ecc(r + 1, r + 1) += share;
      for (std::size_t c = 0; c < d; ++c) Ecc(r + 1, c + 1) += share * mi[r] * mi[c];
    }
    Ecy[0] += share * e.value[0];
    Ecy[k - 1] += share * config_.noise * e.value[1];
    const Vector x = solve_agents(i, i + 1, own);
    const Out to = truth_.x.block(i / kLanes)[Field{0, config_.dim}];
    for (std::size_t r = 0; r < d; ++r) to.row(static_cast<int>(r))[i % kLanes] = x[r];
  }
  Ecc(k - 1, k - 1) = 1;
  std::copy(all.begin(), all.end(), Ecy.begin() + 1);
  truth_.thetac = solve_symmetric(Ecc, Ecy);
  truth_.xc = solve_agents(0, config_.agents, all);
}

std::vector<double> Logistic::solve_agents(std::int64_t first, std::int64_t last,
                                           std::span<const double> target) const {
  const std::size_t d = target.size();
  const double share = 1 / static_cast<double>(last - first);
  Vector x(d);
  constexpr int kMostSteps = 100;
  for (int step = 0; step < kMostSteps; ++step) {
    Vector gap(target.begin(), target.end());  // minus the mean direction
    Matrix H(d, d);
    for (std::int64_t i = first; i < last; ++i) {
      const std::span<const double> mi = m(i);
      const SigmaMoments e = moments_at(mi, x);
      for (std::size_t r = 0; r < d; ++r) {
        gap[r] -= share * (mi[r] * e.value[0] + x[r] * e.value[1]);
        H(r, r) += share * e.value[1];
        for (std::size_t c = 0; c < d; ++c)
          H(r, c) += share * (mi[r] * mi[c] * e.value[1] + x[r] * x[c] * e.value[3] +
                              (mi[r] * x[c] + x[r] * mi[c]) * e.value[2]);
      }
    }
    const Vector move = solve_symmetric(H, gap);
    const double length = norm(move), most = 1 + norm(x);  // damped far from the solution
    for (std::size_t r = 0; r < d; ++r) x[r] += move[r] * (length > most ? most / length : 1);
    if (length <= 1e-13 * most) return x;
  }
  throw BadInput("Newton's method finds no solution of this problem's logistic regressions");
}

void Logistic::declare(Layout&, Layout& sample) const {
  sample.add("phi", config_.dim);
  sample.add("xi", 1);
  sample.add("y", 1);
}

// The label's normal is drawn with the features; a binary label compares its quantile with E y.
void Logistic::draw(const Draw& draw, Agents world, Out s) const {
  normals_about(mean(world.lanes), draw.key, world.lanes, Purpose::kSample, 0, s);
  double* y = s.row(config_.dim + 1);
  for (int l = 0; l < world.lanes.count; ++l) {
    const double* w = weights_.data() + (world.lanes.first + l) * config_.dim;
    double u = config_.noise * xi(s)[l];
    for (int r = 0; r < config_.dim; ++r) u += w[r] * s.row(r)[l];
    const double p = sigma(u), quantile = std::erfc(-y[l] / std::numbers::sqrt2) / 2;
    y[l] = config_.labels == Labels::kProbability ? p : quantile < p ? 1 : 0;
  }
}

void Logistic::objective(Lanes, In s, Out b) const { scale(phi(s), y(s), b); }

void Logistic::direction(Lanes, In s, In b, In x, Scratch&, Out g) const {
  double p[kLanes];
  dot(phi(s), x, g.lanes, p);
  for (int l = 0; l < g.lanes; ++l) p[l] = sigma(p[l]);
  scale(phi(s), p, g);
  subtract_objective(b, g);
}

void Logistic::mean_label(In s, In theta, int lanes, double* label) const {
  dot(phi(s), {theta.row(1), config_.dim, theta.width}, lanes, label);
  const int last = config_.dim + 1;
  for (int l = 0; l < lanes; ++l) label[l] += theta.at(0, l) + theta.at(last, l) * xi(s)[l];
}

void Logistic::Phi(Lanes, In s, In theta, Scratch&, Out bhat) const {
  double label[kLanes];
  mean_label(s, theta, bhat.lanes, label);
  scale(phi(s), label, bhat);
}

// c (c'theta - y)
void Logistic::coe(Lanes, In s, In, In theta, In, Out g) const {
  double gap[kLanes];
  mean_label(s, theta, g.lanes, gap);
  for (int l = 0; l < g.lanes; ++l) gap[l] -= y(s)[l];
  std::copy_n(gap, g.lanes, g.row(0));
  scale(phi(s), gap, {g.row(1), config_.dim, g.lanes});
  for (int l = 0; l < g.lanes; ++l) g.row(config_.dim + 1)[l] = gap[l] * xi(s)[l];
}

void Logistic::known(Lanes, In s, Scratch&, Out b0) const {
  double u[kLanes], sum[kLanes] = {};
  for (std::int64_t j = 0; j < config_.agents; ++j) {
    dot(phi(s), {weights_.data() + j * config_.dim, config_.dim, 1}, b0.lanes, u);
    for (int l = 0; l < b0.lanes; ++l) sum[l] += sigma(u[l] + config_.noise * xi(s)[l]);
  }
  for (double& p : sum) p /= static_cast<double>(config_.agents);
  scale(phi(s), sum, b0);
}

void Logistic::keep(std::int64_t first_block, std::int64_t last_block) {
  Problem::keep(first_block, last_block);
  laws_.keep(first_block, last_block);
}

}  // namespace affpcl
