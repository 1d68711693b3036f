// Gauss-Hermite quadrature: adaptive for an agent with one random effect, and of predictions.
#include <numbers>

#include "affpcl/mixed/glmm_evidence-inl.h"

namespace affpcl {
namespace {

constexpr int kPredictionPoints = 15;

// Channels are taken as independent, with variances that give the logits, which sum to 0, theirs.
// Points of a rule of third degree (Stroud 1971): two for each class.
Vector expected_probabilities(const Likelihood& likelihood, std::span<const double> logits,
                              std::span<const double> variances) {
  const auto n = static_cast<double>(logits.size());
  const double mean = sum(variances) / (n - 1);
  Vector p(logits.size()), at(logits.size());
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const double variance = std::max(0.0, (variances[k] - mean / n) / (1 - 2 / n));
    for (double side : {-1.0, 1.0}) {
      Vector moved(logits.begin(), logits.end());
      moved[k] += side * std::sqrt(n * variance);
      likelihood.mean({}, multiply(transposed(likelihood.basis()), moved).data(), at.data());
      for (std::size_t c = 0; c < p.size(); ++c) p[c] += at[c] / (2 * n);
    }
  }
  return p;
}

}  // namespace

GaussHermite::GaussHermite(int points) : nodes(static_cast<std::size_t>(points)), weights(nodes) {
  // Golub and Welsch (1969).
  Matrix J(nodes.size(), nodes.size());
  for (std::size_t k = 1; k < nodes.size(); ++k)
    J(k, k - 1) = J(k - 1, k) = std::sqrt(static_cast<double>(k) / 2);
  const SymmetricEigen eigen = symmetric_eigen(J);
  nodes = eigen.values;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    weights[k] = std::sqrt(std::numbers::pi) * eigen.vectors(k, 0) * eigen.vectors(k, 0);
}

Vector expected_mean(const Likelihood& likelihood, std::span<const double> psi,
                     std::span<const double> channels, std::span<const double> variances) {
  if (channels.size() > 1) return expected_probabilities(likelihood, channels, variances);
  static const GaussHermite kRule(kPredictionPoints);
  Vector mean(likelihood.outputs()), at(mean.size());
  if (!(variances[0] > 0)) {
    likelihood.mean(psi, channels.data(), mean.data());
    return mean;
  }
  const double width = std::sqrt(2 * variances[0]);
  for (std::size_t k = 0; k < kRule.nodes.size(); ++k) {
    const double eta = channels[0] + width * kRule.nodes[k];
    likelihood.mean(psi, &eta, at.data());
    for (std::size_t j = 0; j < mean.size(); ++j)
      mean[j] += kRule.weights[k] / std::sqrt(std::numbers::pi) * at[j];
  }
  return mean;
}

// One random effect: log of the integral of exp(l - v^2 / 2) / sqrt(2 pi), l without constant, by
// Gauss-Hermite points around the mode (slopes
// are means over its posterior).
double GlmmEvidence::Impl::quadrature(std::size_t held, Space& s) const {
  const double sigma = point->root(0, 0), mode = s.v[0];
  const double width = std::sqrt(2 / s.K(0, 0));
  const std::size_t k = hermite.nodes.size();
  Vector at(k), log_p(k), share(k), pull(k), eta(kRows), psi(e);
  for (std::size_t n = 0; n < k; ++n) at[n] = mode + width * hermite.nodes[n];
  const auto eta_at = [&](std::size_t n, MatrixView x) {
    for (std::size_t r = 0; r < x.cols(); ++r) eta[r] = s.eta[r] + x(random[0], r) * sigma * at[n];
  };
  each_block(held, s, point->centre, [&](const RowBlock& block, MatrixView x) {
    for (std::size_t n = 0; n < k; ++n) {
      eta_at(n, x);
      log_p[n] += likelihood.slope(block, point->psi, eta.data(), s.slopes.data());
      pull[n] += dot(x.row(random[0]), {s.slopes.data(), x.cols()});
    }
  });
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  for (std::size_t n = 0; n < k; ++n) {
    log_p[n] +=
        hermite.nodes[n] * hermite.nodes[n] - at[n] * at[n] / 2 + std::log(hermite.weights[n]);
    top = std::max(top, log_p[n]);
  }
  for (std::size_t n = 0; n < k; ++n) total += share[n] = std::exp(log_p[n] - top);
  for (double& w : share) w /= total;
  // The curvature's g is what information is made of; the exact slope goes elsewhere.
  const double g = s.g[random[0]];
  double slope = 0;
  for (std::size_t n = 0; n < k; ++n) slope += share[n] * at[n] * pull[n];
  Vector mean(p);
  Vector slopes(kRows);
  std::fill(s.psi.begin(), s.psi.end(), 0.0);
  each_block(held, s, point->centre, [&](const RowBlock& block, MatrixView x) {
    std::fill(slopes.begin(), slopes.end(), 0.0);
    for (std::size_t n = 0; n < k; ++n) {
      eta_at(n, x);
      likelihood.slope(block, point->psi, eta.data(), s.slopes.data());
      for (std::size_t r = 0; r < block.count; ++r) slopes[r] += share[n] * s.slopes[r];
      std::fill(psi.begin(), psi.end(), 0.0);
      likelihood.add_extras(block, point->psi, eta.data(), nullptr, nullptr, psi.data());
      for (std::size_t j = 0; j < e; ++j) s.psi[j] += share[n] * psi[j];
    }
    add_slopes(x, slopes.data(), s, mean);
  });
  // collect() takes g - t / 2.
  for (std::size_t j = 0; j < p; ++j) s.t[j] = 2 * (s.g[j] - mean[j]);
  s.D_slope = sigma == 0 ? (g * g - s.W(random[0], random[0])) / 2 : slope / (2 * sigma);
  return top + std::log(total) + std::log(width) - std::log(2 * std::numbers::pi) / 2;
}

}  // namespace affpcl
