#include "affpcl/mixed/noise.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/dense.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr double kStep = 0.1;    // of log s_i^2
constexpr int kReach = 80;       // steps to each side of s^2: a factor of 3,000
constexpr int kRounds = 100;     // of EM for m and t, at most
constexpr double kStill = 1e-3;  // of m and t^2: the last round
constexpr int kTurns = 3;        // of noise and decomposition, at most
constexpr double kNear = 0.1;    // of log s_i^2: no further turn
constexpr double kClear = 1.35;  // of log evidence: by chance in one table of twenty

constexpr std::size_t kGrid = 2 * kReach + 1;

// log p(rows of agent i | s_i^2) at s_i^2 = s^2 exp(k kStep), k = -kReach..kReach.
void log_likelihood(const Moments& m, const Learnt& learnt, std::size_t i, std::span<double> out) {
  const Decomposition& model = learnt.chosen.best;
  const std::size_t d = m.d;
  const MatrixView A(m.A.data() + m.at(i) * d * d, d, d);
  const std::span b(m.b.data() + m.at(i) * d, d);
  Matrix D = MatrixView(model.variances.D.data(), d, d);
  const double widened = agent_posterior(learnt.moments, model, i).widened;
  for (double& v : D.all()) v *= widened;
  const Matrix root = semidefinite_root(D);
  SymmetricEigen eigen = symmetric_eigen(multiply(root, multiply(A, transposed(root))));
  const Vector pull = multiply(transposed(A), model.centre);
  Vector& e = eigen.values;
  Vector c2(b.begin(), b.end()), below(d), share(d);
  for (std::size_t j = 0; j < d; ++j) e[j] = std::max(e[j], 0.0), c2[j] -= pull[j];
  c2 = multiply(transposed(multiply(transposed(root), transposed(eigen.vectors))), c2);
  for (double& v : c2) v *= v;
  const double rr =
      std::max(0.0, m.yy[m.at(i)] - 2 * dot(b, model.centre) + dot(model.centre, pull));
  for (int k = -kReach; k <= kReach; ++k) {
    const double s2 = model.variances.s2 * std::exp(k * kStep);
    for (std::size_t j = 0; j < d; ++j) below[j] = s2 + e[j], share[j] = c2[j] / below[j];
    logarithms(below);
    const double square = std::max(0.0, rr - sum(share)) / s2;
    out[static_cast<std::size_t>(k + kReach)] =
        -0.5 * (square + (m.rows[m.at(i)] - static_cast<double>(d)) * std::log(s2) + sum(below));
  }
}

// x <- exp(x - the largest of x), which it returns.
double exponentials_below_one(Vector& x) {
  const double top = *std::max_element(x.begin(), x.end());
  for (double& v : x) v -= top;
  exponentials(x);
  return top;
}

// log of the normal law of log s_i^2 / s^2 on the grid.
Vector log_prior(const Vector& at, double mean, double variance) {
  Vector p;
  for (double a : at) p.push_back(-((a - mean) * (a - mean)) / (2 * variance));
  Vector weight = p;
  const double top = exponentials_below_one(weight), log_sum = std::log(sum(weight));
  for (double& v : p) v = v - log_sum - top;
  return p;
}

Moments divided(const Moments& m, const std::vector<double>& by) {
  Moments out = m;
  for (std::size_t i = 0; i < m.held(); ++i) {
    const double factor = by[m.first + i];
    for (std::size_t j = 0; j < m.d * m.d; ++j) out.A[i * m.d * m.d + j] /= factor;
    for (std::size_t j = 0; j < m.d; ++j) out.b[i * m.d + j] /= factor;
    out.yy[i] /= factor;
  }
  return out;
}

}  // namespace

std::vector<double> noise_factors(const Moments& m, const Learnt& learnt, Team& team) {
  if (m.n < 2) return {};
  Matrix likelihood(m.held(), kGrid);
  team.each(own_agents(m.n, team), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    log_likelihood(m, learnt, i, likelihood.row(m.at(i)));
  });
  Vector at, square;
  for (int k = -kReach; k <= kReach; ++k)
    at.push_back(kStep * k), square.push_back(at.back() * at.back());
  Vector factor = at;
  exponentials(factor);
  AgentSum total(3, m.n, team);
  const double same =
      total([&](std::size_t i, double* out) { out[0] += likelihood(m.at(i), kReach); })[0];
  const auto n = static_cast<double>(m.n);
  double mean = 0, variance = 0.25, evidence = 0;
  std::vector<double> factors(m.n, 1.0);
  for (int round = 0; round < kRounds; ++round) {
    const Vector prior = log_prior(at, mean, variance);
    const double* const sums = total([&](std::size_t i, double* out) {
      Vector weight = prior;
      for (std::size_t k = 0; k < kGrid; ++k) weight[k] += likelihood(m.at(i), k);
      const double top = exponentials_below_one(weight), all = sum(weight);
      for (double& w : weight) w /= all;
      out[0] += top + std::log(all);
      out[1] += dot(weight, at);
      out[2] += dot(weight, square);
      factors[i] = dot(weight, factor);
    });
    const double old_mean = mean, old_variance = variance;
    evidence = sums[0];
    mean = sums[1] / n;
    variance = std::max(kStep * kStep / 4, sums[2] / n - mean * mean);
    if (std::abs(mean - old_mean) < kStill && std::abs(variance - old_variance) < kStill) break;
  }
  if (evidence - same < std::max(kClear, std::log(n) / 2)) return {};
  return factors;
}

Learnt decompose_with_noise(const Moments& moments, const DecompositionOptions& options,
                            Team& team) {
  Learnt learnt{decompose(moments, options, team), moments, std::vector<double>(moments.n, 1.0)};
  // The kind of D stays what it was, and variances need no more digits than the noise has.
  DecompositionOptions again = options;
  again.evidence_tolerance = std::max(options.evidence_tolerance, 1e-3);
  again.scalar = learnt.chosen.best.covariance == Covariance::kScalar;
  again.diagonal = learnt.chosen.best.covariance == Covariance::kDiagonal;
  again.full = learnt.chosen.best.covariance == Covariance::kFull;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::vector<double> factors = noise_factors(moments, learnt, team);
    if (factors.empty()) break;
    double moved = 0;
    for (std::size_t i = 0; i < moments.n; ++i)
      moved = std::max(moved, std::abs(std::log(factors[i] / learnt.noise[i])));
    if (!team.processes().any(moved >= kNear)) break;
    learnt.noise = factors;
    learnt.moments = divided(moments, factors);
    const Variances near = learnt.chosen.best.variances;
    again.start = &near;
    learnt.chosen.best = decompose(learnt.moments, again, team).best;
  }
  return learnt;
}

}  // namespace affpcl
