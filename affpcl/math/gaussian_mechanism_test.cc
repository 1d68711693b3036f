#include "affpcl/math/gaussian_mechanism.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace affpcl {
namespace {

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// delta is what is left of one density over e^epsilon times the other: here by the trapezoidal rule.
double integrated_delta(double epsilon, double multiplier) {
  const double sigma = multiplier, step = 1e-4 * sigma;
  double sum = 0;
  for (double x = -12 * sigma; x < 12 * sigma + 1; x += step) {
    const double p = std::exp(-(x - 1) * (x - 1) / (2 * sigma * sigma)),
                 q = std::exp(-x * x / (2 * sigma * sigma));
    sum += std::max(0.0, p - std::exp(epsilon) * q);
  }
  return sum * step / (sigma * std::sqrt(2 * std::numbers::pi));
}

TEST(GaussianMechanism, DeltaIsTheIntegralOfThePositiveDifference) {
  for (const double epsilon : {0.1, 0.5, 1.0, 2.0, 4.0})
    for (const double multiplier : {0.4, 0.8, 1.5, 4.0}) {
      const double found = gaussian_delta(epsilon, multiplier);
      EXPECT_NEAR(found, integrated_delta(epsilon, multiplier), 1e-9 + 1e-5 * found)
          << epsilon << " " << multiplier;
    }
}

TEST(GaussianMechanism, MultiplierIsTheLeastOne) {
  for (const double epsilon : {0.05, 0.3, 1.0, 4.0, 10.0, 50.0})
    for (const double delta : {1e-3, 1e-5, 1e-10, 1e-30}) {
      const double m = gaussian_multiplier(epsilon, delta);
      EXPECT_LE(gaussian_delta(epsilon, m), delta);
      EXPECT_GT(gaussian_delta(epsilon, m * (1 - 1e-9)), delta) << epsilon << " " << delta;
    }
  // Better than the classical sqrt(2 log(1.25 / delta)) / epsilon, which holds for epsilon < 1 only.
  EXPECT_LT(gaussian_multiplier(0.5, 1e-5), std::sqrt(2 * std::log(1.25e5)) / 0.5);
}

TEST(GaussianMechanism, DiscreteAndRoundedDifferLessThanTheBound) {
  for (const double sigma : {2.0, 3.0, 10.0, 40.0}) {
    double sum = 0;
    for (double k = -std::ceil(12 * sigma); k <= 12 * sigma; ++k)
      sum += std::exp(-k * k / (2 * sigma * sigma));
    double distance = 0;
    for (double k = -std::ceil(12 * sigma); k <= 12 * sigma; ++k) {
      const double rounded = normal_cdf((k + .5) / sigma) - normal_cdf((k - .5) / sigma);
      distance += std::abs(std::exp(-k * k / (2 * sigma * sigma)) / sum - rounded) / 2;
    }
    EXPECT_LT(distance, 1 / (40 * sigma * sigma)) << sigma;
    EXPECT_GT(distance, 1 / (200 * sigma * sigma)) << sigma;
    EXPECT_NEAR(discrete_delta(0, sigma, 1), 2 / (40 * sigma * sigma), 1e-15);
  }
}

}  // namespace
}  // namespace affpcl
