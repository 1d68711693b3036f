#include "affpcl/mixed/divergence.h"

#include <cmath>

namespace affpcl {
namespace {

// The second derivative of loss(y, mean) in its mean, where y is the mean.
double curvature(const Likelihood& likelihood, std::span<const double> psi, double mean) {
  switch (likelihood.family()) {
    case Family::kPoisson:
      return 2 / mean;
    case Family::kNegativeBinomial:
      return 2 / (mean + mean * mean / std::exp(psi[0]));
    case Family::kGamma:
      return 2 / (mean * mean);
    default:
      return 2;
  }
}

}  // namespace

Divergence divergence(const Likelihood& likelihood, std::span<const double> psi,
                      std::span<const double> from, std::span<const double> to) {
  if (from.size() > 1) return class_divergence(from, to);
  const auto at = [&](double y) {
    return likelihood.loss(psi, y, 1, to.data()) - likelihood.loss(psi, y, 1, from.data());
  };
  Divergence d{at(from[0]), 0, Vector(1)};
  d.slope[0] = at(from[0] + 1) - d.gap;
  d.norm = d.slope[0] * d.slope[0] / (2 * curvature(likelihood, psi, from[0]));
  return d;
}

}  // namespace affpcl
