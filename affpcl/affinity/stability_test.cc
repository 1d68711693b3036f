#include "affpcl/affinity/stability.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

// One unknown, A = 1 or 3 with equal probability: E(1 - alpha A)^2 = 1 - 4 alpha + 5 alpha^2 < 1 up
// to alpha = .8, although the mean converges up to 1.
TEST(Stability, OneUnknownByHand) {
  FiniteSystem f;
  f.agents = 1, f.states = 2, f.d = 1, f.k = 1;
  f.A = {1, 3}, f.Phi = {1, 1}, f.mu = {0.5, 0.5}, f.theta = {1};
  EXPECT_NEAR(stable_steps(Tabular(f, Tabular::Coe::kAuto), 1, 1).front(), 0.8, 1e-8);
}

// Without noise it is 2 / the largest eigenvalue.
TEST(Stability, NoNoise) {
  FiniteSystem f;
  f.agents = 1, f.states = 1, f.d = 2, f.k = 2;
  f.A = {2, 0, 0, 5}, f.Phi = {1, 0, 0, 1}, f.mu = {1}, f.theta = {1, 1};
  EXPECT_NEAR(stable_steps(Tabular(f, Tabular::Coe::kAuto), 1, 1).front(), 0.4, 1e-8);
}

// gaussian in one dimension, eps_A = 1, mean m: A = a (1 + s^2), E A = a (2 + m^2), E A^2 =
// a^2 (1 + 2 (1 + m^2) + 3 + 6 m^2 + m^4); the limit is 2 E A / E A^2. 20,000 draws of a fourth
// power.
TEST(Stability, MonteCarlo) {
  const Gaussian g({.agents = 2, .dim = 1, .delta_env = 0.25}, 3, 0);
  const std::vector<double> limits = stable_steps(g, 1, 20000);
  Buffer one(kLanes), y(kLanes);
  one.data()[0] = one.data()[1] = 1;
  g.mean_apply({0, 2}, {one.data(), 1}, {y.data(), 1});
  for (int i = 0; i < 2; ++i) {
    const double m2 = i == 0 ? 0 : 1, a = y.data()[i] / (2 + m2);
    const double want = 2 * (2 + m2) / (a * (1 + 2 * (1 + m2) + 3 + 6 * m2 + m2 * m2));
    EXPECT_NEAR(limits[static_cast<std::size_t>(i)] / want, 1, 0.1);
  }
}

// Of a matrix that is not symmetric: both sides of the equation, and a diagonal one by hand.
TEST(ErrorMetric, SolvesTheLyapunovEquation) {
  Matrix A(3, 3);
  const double numbers[] = {2, 1, 0, -3, 1, 0.5, 0.1, 0, 0.01};
  std::copy(std::begin(numbers), std::end(numbers), A.all().begin());
  const Matrix L = error_metric(A);
  ASSERT_EQ(L.rows(), 3u);
  const Matrix AL = multiply(transposed(A), L), LA = multiply(L, A);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(AL(r, c) + LA(r, c), r == c ? 1 : 0, 1e-9);
  Matrix D(2, 2);
  D(0, 0) = 4, D(1, 1) = 0.001;
  EXPECT_NEAR(error_metric(D)(0, 0), 1.0 / 8, 1e-12);
  EXPECT_NEAR(error_metric(D)(1, 1), 500, 1e-6);
}

TEST(ErrorMetric, NoneWithoutStability) {
  Matrix A(2, 2);
  A(0, 0) = 1, A(1, 1) = -1;
  EXPECT_EQ(error_metric(A).rows(), 0u);
}

}  // namespace
}  // namespace affpcl
