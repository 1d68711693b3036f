#include "affpcl/table/typical_covariance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace affpcl {
namespace {

// Agents with few rows of correlated columns: their coefficients are sure in some directions only.
struct World {
  World(std::size_t d, std::size_t agents, std::size_t rows, double correlation) : typical(d, d) {
    std::normal_distribution<double> normal;
    const auto row = [&] {
      Vector x(d);
      const double common = std::sqrt(correlation) * normal(random);
      for (double& v : x) v = common + std::sqrt(1 - correlation) * normal(random);
      x[0] = 1;
      return x;
    };
    for (std::size_t i = 0; i < agents; ++i) {
      Matrix precision = Matrix::identity(d);
      for (std::size_t r = 0; r < rows; ++r) {
        const Vector x = row();
        for (std::size_t j = 0; j < d; ++j)
          for (std::size_t k = 0; k < d; ++k) precision(j, k) += x[j] * x[k];
      }
      covs.push_back(inverse(precision));
      for (std::size_t j = 0; j < d * d; ++j)
        typical.all()[j] += covs.back().all()[j] / static_cast<double>(agents);
    }
    for (int r = 0; r < 400; ++r) fresh.push_back(row());
    second = Matrix(d, d);
    for (const Vector& x : fresh)
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k < d; ++k) second(j, k) += x[j] * x[k] / 400;
  }

  std::mt19937 random{7};
  std::vector<Matrix> covs;
  Matrix typical, second;
  std::vector<Vector> fresh;
};

double form(const Matrix& A, const Vector& x) { return dot(x, multiply(A, x)); }

double near_form(const LinearModel& m, const Matrix& typical, const Vector& x) {
  double sum = m.near_cov.scale * form(typical, x);
  for (std::size_t k = 0; k < m.near_cov.weights.size(); ++k)
    sum += m.near_cov.weights[k] *
           std::pow(dot({m.near_cov.directions.data() + k * x.size(), x.size()}, x), 2);
  return sum;
}

TEST(TypicalCovariance, AverageRowsHaveTheVarianceOfTheWholeCovariance) {
  const World world(24, 30, 12, 0.8);
  const TypicalCovariance reduction(world.typical, world.second);
  double squares = 0, by_diagonal = 0;
  for (const Matrix& cov : world.covs) {
    LinearModel m;
    m.cov = cov.all();
    reduction.reduce(m);
    ASSERT_TRUE(m.cov.empty());
    double exact = 0, near = 0, diagonal = 0;
    for (const Vector& x : world.fresh) {
      const double whole = form(cov, x), reduced = near_form(m, world.typical, x);
      ASSERT_GT(reduced, 0);
      exact += whole, near += reduced;
      squares += std::pow(std::log(reduced / whole), 2);
      for (std::size_t j = 0; j < x.size(); ++j) diagonal += x[j] * x[j] * cov(j, j);
    }
    EXPECT_NEAR(near / exact, 1, 1e-4);
    by_diagonal += diagonal / exact / static_cast<double>(world.covs.size());
  }
  EXPECT_GT(by_diagonal, 1.5);  // what standard errors alone would say
  EXPECT_LT(std::sqrt(squares / static_cast<double>(world.covs.size() * 400)), 0.2);
}

TEST(TypicalCovariance, FewCoefficientsLoseNothing) {
  const World world(6, 10, 4, 0.5);
  const TypicalCovariance reduction(world.typical, world.second);
  for (const Matrix& cov : world.covs) {
    LinearModel m;
    m.cov = cov.all();
    reduction.reduce(m);
    for (std::size_t r = 0; r < 20; ++r)
      EXPECT_NEAR(near_form(m, world.typical, world.fresh[r]) / form(cov, world.fresh[r]), 1, 1e-4);
  }
}

TEST(TypicalCovariance, ADirectionWithoutVarianceKeepsNone) {
  World world(4, 5, 3, 0);
  for (Matrix& cov : world.covs)
    for (std::size_t j = 0; j < 4; ++j) cov(j, 2) = cov(2, j) = 0;
  for (std::size_t j = 0; j < 4; ++j) world.typical(j, 2) = world.typical(2, j) = 0;
  const TypicalCovariance reduction(world.typical, world.second);
  LinearModel m;
  m.cov = world.covs[0].all();
  reduction.reduce(m);
  EXPECT_NEAR(near_form(m, world.typical, {0, 0, 1, 0}), 0, 1e-12);
}

}  // namespace
}  // namespace affpcl
