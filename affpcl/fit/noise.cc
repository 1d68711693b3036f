#include "affpcl/fit/noise.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "affpcl/fit/agents.h"

namespace affpcl {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kStep = 0.1;    // of log s_i^2
constexpr int kReach = 80;       // steps to each side of s^2: a factor of 3,000
constexpr int kRounds = 100;     // of EM for m and t, at most
constexpr double kStill = 1e-3;  // of m and t^2: the last round
constexpr int kTurns = 3;        // of noise and decomposition, at most
constexpr double kNear = 0.1;    // of log s_i^2: no further turn
constexpr double kClear = 1.35;  // of log evidence: by chance in one table of twenty

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

// log p(rows of agent i | s_i^2) at s_i^2 = s^2 exp(k kStep), k = -kReach..kReach.
Vector log_likelihood(const Moments& m, const Learnt& learnt, std::size_t i) {
  const Decomposition& model = learnt.chosen.best;
  const auto d = index(m.d);
  const Eigen::Map<const Matrix> A(m.A.data() + m.at(i) * m.d * m.d, d, d),
      D(model.variances.D.data(), d, d);
  const Eigen::Map<const Vector> b(m.b.data() + m.at(i) * m.d, d), centre(model.centre.data(), d);
  const double widened = agent_posterior(learnt.moments, model, i).widened;
  const Eigen::SelfAdjointEigenSolver<Matrix> spread(widened * D);
  const Matrix L = spread.eigenvectors() *
                   spread.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal().toDenseMatrix();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(Matrix(L.transpose() * A * L));
  const Eigen::ArrayXd e = eigen.eigenvalues().array().max(0.0);
  const Eigen::ArrayXd c2 =
      (eigen.eigenvectors().transpose() * L.transpose() * (b - A * centre)).array().square();
  const double rr = std::max(0.0, m.yy[m.at(i)] - 2 * b.dot(centre) + centre.dot(A * centre));
  Vector out(2 * kReach + 1);
  for (int k = -kReach; k <= kReach; ++k) {
    const double s2 = model.variances.s2 * std::exp(k * kStep);
    const double square = std::max(0.0, rr - (c2 / (s2 + e)).sum()) / s2;
    out[k + kReach] = -0.5 * (square + (m.rows[m.at(i)] - static_cast<double>(m.d)) * std::log(s2) +
                              (s2 + e).log().sum());
  }
  return out;
}

// log of the normal law of log s_i^2 / s^2 on the grid.
Eigen::ArrayXd log_prior(const Eigen::ArrayXd& at, double mean, double variance) {
  const Eigen::ArrayXd p = -(at - mean).square() / (2 * variance);
  return p - std::log((p - p.maxCoeff()).exp().sum()) - p.maxCoeff();
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
  Matrix likelihood(2 * kReach + 1, index(m.held()));  // a column an agent
  team.each(own_agents(m.n, team), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    likelihood.col(index(m.at(i))) = log_likelihood(m, learnt, i);
  });
  const Eigen::ArrayXd at =
      kStep * Eigen::ArrayXd::LinSpaced(2 * kReach + 1, -double{kReach}, double{kReach});
  const Eigen::ArrayXd factor = at.exp();
  AgentSum total(3, m.n, team);
  const double same =
      total([&](std::size_t i, double* out) { out[0] += likelihood(kReach, index(m.at(i))); })[0];
  const auto n = static_cast<double>(m.n);
  double mean = 0, variance = 0.25, evidence = 0;
  std::vector<double> factors(m.n, 1.0);
  for (int round = 0; round < kRounds; ++round) {
    const Eigen::ArrayXd prior = log_prior(at, mean, variance);
    const double* const sums = total([&](std::size_t i, double* out) {
      const Eigen::ArrayXd joint = likelihood.col(index(m.at(i))).array() + prior;
      const double top = joint.maxCoeff();
      Eigen::ArrayXd weight = (joint - top).exp();
      const double all = weight.sum();
      weight /= all;
      out[0] += top + std::log(all);
      out[1] += (weight * at).sum();
      out[2] += (weight * at.square()).sum();
      factors[i] = (weight * factor).sum();
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
  again.scalar = learnt.chosen.best.spread == Spread::kScalar;
  again.diagonal = learnt.chosen.best.spread == Spread::kDiagonal;
  again.full = learnt.chosen.best.spread == Spread::kFull;
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
