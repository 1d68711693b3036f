#include "affpcl/mixed/glmm_evidence.h"

#include <gtest/gtest.h>

#include <numbers>

#include "affpcl/mixed/glmm_world_test.h"

namespace affpcl {
namespace {

GlmmPoint place(const Likelihood& likelihood, std::size_t d, std::size_t c) {
  const std::size_t m = likelihood.predictors(), q = m * c;
  GlmmPoint point{Vector(m * d), Matrix(q, q), Vector(likelihood.extras())};
  for (std::size_t j = 0; j < m * d; ++j) point.centre[j] = 0.3 - 0.2 * static_cast<double>(j % 3);
  for (std::size_t j = 0; j < q; ++j)
    for (std::size_t k = 0; k <= j; ++k) point.root(j, k) = j == k ? 0.6 : 0.1;
  for (std::size_t k = 0; k < point.psi.size(); ++k) point.psi[k] = 0.3;
  return point;
}

// Slopes by central differences of values that start from scratch.
struct Differences {
  Differences(const GlmmWorld& w, GlmmEvidence::Options o) : world(w), options(std::move(o)) {}
  double value(const GlmmPoint& point) const {
    const auto team = serial_team();
    const Likelihood likelihood = world.likelihood();
    return GlmmEvidence(world.table, likelihood, options, *team)(point, false).value;
  }
  template <class Move>
  double slope(const GlmmPoint& point, Move move) const {
    constexpr double kStep = 1e-4;
    double sum = 0;  // five points
    const double by[] = {-2, -1, 1, 2}, with[] = {1. / 12, -8. / 12, 8. / 12, -1. / 12};
    for (int k = 0; k < 4; ++k) {
      GlmmPoint at = point;
      move(at, by[k] * kStep);
      sum += with[k] * value(at);
    }
    return sum / kStep;
  }
  const GlmmWorld& world;
  GlmmEvidence::Options options;
};

class EveryFamilysEvidence : public testing::TestWithParam<Family> {};

TEST_P(EveryFamilysEvidence, SlopesAreThoseOfTheValue) {
  GlmmWorld world{.family = GetParam(), .agents = 10, .rows = 9};
  world.make();
  world.weight.assign(world.y.size(), 1.0);
  world.offset.assign(world.likelihood().predictors() * world.y.size(), 0.0);
  for (std::size_t r = 0; r < world.y.size(); ++r)
    world.weight[r] += 0.1 * static_cast<double>(r % 4);
  for (std::size_t r = 0; r < world.offset.size(); ++r)
    world.offset[r] = 0.05 * static_cast<double>(r % 7);
  world.table.weight = world.weight.data(), world.table.offset = world.offset.data();
  const Likelihood likelihood = world.likelihood();
  const GlmmPoint point = place(likelihood, 2, 2);
  const GlmmEvidence::Options options{.random = {0, 1}};
  const Differences differences(world, options);
  const auto team = serial_team();
  GlmmEvidence evidence(world.table, likelihood, options, *team);
  const EvidenceSums sums = evidence(point, true);
  EXPECT_EQ(sums.unfinished, 0);
  const double tolerance = 1e-6 * std::abs(sums.value);
  for (std::size_t j = 0; j < point.centre.size(); ++j)
    EXPECT_NEAR(sums.centre[j],
                differences.slope(point, [&](GlmmPoint& at, double by) { at.centre[j] += by; }),
                tolerance);
  const Matrix in_root = multiply(sums.D_slope, point.root);
  for (std::size_t j = 0; j < point.root.rows(); ++j)
    for (std::size_t k = 0; k <= j; ++k)
      EXPECT_NEAR(2 * in_root(j, k),
                  differences.slope(point, [&](GlmmPoint& at, double by) { at.root(j, k) += by; }),
                  tolerance);
  for (std::size_t k = 0; k < point.psi.size(); ++k)
    EXPECT_NEAR(sums.psi[k],
                differences.slope(point, [&](GlmmPoint& at, double by) { at.psi[k] += by; }),
                tolerance);
  // Variances alone are the diagonal of the same, summed over the predictors.
  const Matrix full = sums.D_slope, diagonal = evidence(point, false).D_slope;
  for (std::size_t j = 0; j < 2; ++j) {
    double slope = 0;
    for (std::size_t a = 0; a < likelihood.predictors(); ++a) slope += full(2 * a + j, 2 * a + j);
    EXPECT_NEAR(diagonal(0, j), slope, 1e-7);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilysEvidence, testing::ValuesIn(kEveryFamily),
                         family_test_name);

class Bound : public testing::TestWithParam<Family> {};

TEST_P(Bound, HasTheSlopesOfItsValue) {
  GlmmWorld world{.family = GetParam(), .agents = 6, .rows = 9};
  world.make();
  const Likelihood likelihood = world.likelihood();
  GlmmPoint point = place(likelihood, 2, 2);
  for (bool full : {true, false}) {
    if (!full)
      for (std::size_t j = 0; j < point.root.rows(); ++j)
        for (std::size_t k = 0; k < j; ++k) point.root(j, k) = 0;
    const GlmmEvidence::Options options{.random = {0, 1}, .bound = true};
    const Differences differences(world, options);
    const auto team = serial_team();
    GlmmEvidence evidence(world.table, likelihood, options, *team);
    const EvidenceSums sums = evidence(point, full);
    EXPECT_EQ(sums.unfinished, 0);
    for (std::size_t j = 0; j < point.centre.size(); ++j)
      EXPECT_NEAR(sums.centre[j],
                  differences.slope(point, [&](GlmmPoint& at, double by) { at.centre[j] += by; }),
                  2e-4);
    const Matrix in_root = full ? multiply(sums.D_slope, point.root) : Matrix(1, 2);
    for (std::size_t j = 0; j < point.root.rows() && full; ++j)
      for (std::size_t k = 0; k <= j; ++k)
        EXPECT_NEAR(
            2 * in_root(j, k),
            differences.slope(point, [&](GlmmPoint& at, double by) { at.root(j, k) += by; }), 2e-4);
    for (std::size_t j = 0; j < 2 && !full; ++j)
      EXPECT_NEAR(2 * sums.D_slope(0, j) * point.root(j, j),
                  differences.slope(point,
                                    [&](GlmmPoint& at, double by) {
                                      for (std::size_t a = j; a < at.root.rows(); a += 2)
                                        at.root(a, a) += by;
                                    }),
                  2e-4);
  }
}

TEST_P(Bound, HasTheSameBitsOnAnyTeam) {
  GlmmWorld world{.family = GetParam(), .agents = 40};
  world.make();
  const Likelihood likelihood = world.likelihood();
  const GlmmPoint point = place(likelihood, 2, 2);
  const auto one = serial_team(), three = thread_team(3);
  const GlmmEvidence::Options options{.random = {0, 1}, .bound = true};
  GlmmEvidence a(world.table, likelihood, options, *one),
      b(world.table, likelihood, options, *three);
  EXPECT_EQ(a(point, false).value, b(point, false).value);
  EXPECT_EQ(a(point, false).information, b(point, false).information);
}

INSTANTIATE_TEST_SUITE_P(Classes, Bound, testing::Values(Family::kBinomial, Family::kMultinomial),
                         family_test_name);

// log of the integral over v of exp(l - |v|^2 / 2) / (2 pi)^(q/2) on a fine grid.
double integrated(const GlmmWorld& world, const GlmmPoint& point, std::size_t q) {
  const Likelihood likelihood = world.likelihood();
  constexpr double kWidth = 0.05, kEnd = 8;
  const int points = static_cast<int>(2 * kEnd / kWidth) + 1;
  double total = 0;
  for (std::size_t i = 0; i < world.agents; ++i) {
    double sum = 0;
    const int second = q == 2 ? points : 1;
    for (int a = 0; a < points; ++a)
      for (int b = 0; b < second; ++b) {
        Vector v{-kEnd + kWidth * a};
        if (q == 2) v.push_back(-kEnd + kWidth * b);
        const Vector u = multiply(point.root, v);
        double l = -squared_norm(v) / 2, g = 0;
        for (std::size_t r = 0; r < world.rows; ++r) {
          const std::size_t at = i * world.rows + r;
          double eta = 0;
          for (std::size_t j = 0; j < world.d; ++j)
            eta += world.X[j * world.y.size() + at] * (point.centre[j] + (j < q ? u[j] : 0));
          const RowBlock row = world.table.block(at, 1);
          l += likelihood.slope(row, point.psi, &eta, &g) + likelihood.constant(row, point.psi);
        }
        sum += std::exp(l);
      }
    total +=
        std::log(sum * std::pow(kWidth / std::sqrt(2 * std::numbers::pi), static_cast<double>(q)));
  }
  return total;
}

TEST(Laplace, QuadratureIsTheIntegral) {
  for (Family family : {Family::kBinomial, Family::kPoisson, Family::kOrdinal}) {
    GlmmWorld world{.family = family, .agents = 6, .rows = 1};
    world.make();
    const Likelihood likelihood = world.likelihood();
    GlmmPoint point = place(likelihood, 2, 1);
    point.root(0, 0) = 1.5;
    const auto team = serial_team();
    GlmmEvidence quadrature(world.table, likelihood, {.random = {0}, .quadrature = 25}, *team);
    EXPECT_NEAR(quadrature(point, false).value, integrated(world, point, 1), 1e-6);
    // Laplace's approximation is not: one row says little of its agent.
    GlmmEvidence plain(world.table, likelihood, {.random = {0}}, *team);
    EXPECT_GT(std::abs(plain(point, false).value - integrated(world, point, 1)), 1e-3);
  }
}

// Less than .01 below for each of 20 agents with 12 rows.
TEST(BoundOfBinomial, IsCloseBelowTheIntegral) {
  GlmmWorld world{.family = Family::kBinomial};
  world.make();
  for (std::size_t q : {1, 2}) {
    GlmmPoint point{Vector{-0.3, 0.4}, Matrix::identity(q), {}};
    for (double& v : point.root.all()) v *= 0.8;
    std::vector<std::size_t> random{0};
    if (q == 2) random.push_back(1);
    const auto team = serial_team();
    const Likelihood likelihood = world.likelihood();
    const double bound = GlmmEvidence(world.table, likelihood, {.random = random, .bound = true},
                                      *team)(point, false)
                             .value;
    const double truth = integrated(world, point, q);
    EXPECT_LT(bound, truth + 1e-6);
    EXPECT_GT(bound, truth - 0.01 * 20);
  }
}

// Columns separate the classes of every agent.
TEST(BoundOfBinomial, HoldsWhereRowsAreSeparated) {
  GlmmWorld world{.agents = 10, .rows = 20};
  world.make();
  for (std::size_t r = 0; r < world.y.size(); ++r) world.y[r] = world.X[world.y.size() + r] > 0;
  GlmmPoint point{Vector{0, 0}, Matrix::identity(2), {}};
  for (double& v : point.root.all()) v *= 6;
  const auto team = serial_team();
  const Likelihood likelihood = world.likelihood();
  const auto value = [&](bool bound) {
    return GlmmEvidence(world.table, likelihood, {.random = {0, 1}, .bound = bound}, *team)(point,
                                                                                            false)
        .value;
  };
  const double truth = integrated(world, point, 2);
  EXPECT_LT(value(true), truth);
  EXPECT_GT(value(true), truth - 0.15 * 10);
}

TEST(Laplace, QuadratureHasTheSlopesOfItsValue) {
  GlmmWorld world{.family = Family::kNegativeBinomial, .agents = 8, .rows = 3};
  world.make();
  const Likelihood likelihood = world.likelihood();
  const GlmmPoint point = place(likelihood, 2, 1);
  const GlmmEvidence::Options options{.random = {1}, .quadrature = 25};
  const auto team = serial_team();
  const EvidenceSums sums = GlmmEvidence(world.table, likelihood, options, *team)(point, false);
  const Differences d(world, options);
  for (std::size_t j = 0; j < 2; ++j)
    EXPECT_NEAR(sums.centre[j], d.slope(point, [&](auto& at, double by) { at.centre[j] += by; }),
                1e-5);
  EXPECT_NEAR(2 * point.root(0, 0) * sums.D_slope(0, 0),
              d.slope(point, [&](auto& at, double by) { at.root(0, 0) += by; }), 1e-5);
  EXPECT_NEAR(sums.psi[0], d.slope(point, [&](auto& at, double by) { at.psi[0] += by; }), 1e-5);
}

TEST(Laplace, IsTheIntegralOfAGaussianInTwoDimensions) {
  GlmmWorld world{.family = Family::kGaussian, .agents = 4, .rows = 5};
  world.make();
  const Likelihood likelihood = world.likelihood();
  const GlmmPoint point = place(likelihood, 2, 2);
  const auto team = serial_team();
  GlmmEvidence evidence(world.table, likelihood, {.random = {0, 1}}, *team);
  EXPECT_NEAR(evidence(point, false).value, integrated(world, point, 2), 1e-8);
}

TEST(Laplace, IsNearTheIntegralInTwoDimensions) {
  // 40 rows an agent: the error of Laplace's approximation is of the order of agents / rows.
  GlmmWorld world{.family = Family::kBinomial, .agents = 4, .rows = 40};
  world.make();
  const Likelihood likelihood = world.likelihood();
  const GlmmPoint point = place(likelihood, 2, 2);
  const auto team = serial_team();
  GlmmEvidence evidence(world.table, likelihood, {.random = {0, 1}}, *team);
  EXPECT_NEAR(evidence(point, false).value, integrated(world, point, 2), 0.1);
}

TEST(Laplace, AVarianceOfZeroIsAPlaceLikeOthers) {
  GlmmWorld world;
  world.make();
  const Likelihood likelihood = world.likelihood();
  GlmmPoint point = place(likelihood, 2, 2);
  point.root = Matrix(2, 2);
  const auto team = serial_team();
  GlmmEvidence evidence(world.table, likelihood, {.random = {0, 1}}, *team);
  const EvidenceSums at_zero = evidence(point, false);
  GlmmEvidence none(world.table, likelihood, {.random = {}}, *team);
  EXPECT_NEAR(at_zero.value, none(point, false).value, 1e-10);
  point.root(1, 1) = 1e-4;  // the slope in D, by one-sided differences
  EXPECT_NEAR((evidence(point, false).value - at_zero.value) / 1e-8, at_zero.D_slope(0, 1), 1e-3);
}

TEST(Laplace, HasTheSameBitsOnAnyTeam) {
  for (Family family : {Family::kBinomial, Family::kMultinomial, Family::kNegativeBinomial}) {
    GlmmWorld world{.family = family, .agents = 50};
    world.make();
    const Likelihood likelihood = world.likelihood();
    const GlmmPoint point = place(likelihood, 2, 2);
    const auto one = serial_team(), three = thread_team(3);
    GlmmEvidence a(world.table, likelihood, {.random = {0, 1}}, *one),
        b(world.table, likelihood, {.random = {0, 1}}, *three);
    const EvidenceSums x = a(point, true), y = b(point, true);
    EXPECT_EQ(x.value, y.value);
    EXPECT_EQ(x.centre, y.centre);
    EXPECT_EQ(x.information, y.information);
    EXPECT_EQ(x.D_slope, y.D_slope);
    EXPECT_EQ(x.D_information, y.D_information);
    EXPECT_EQ(x.psi, y.psi);
  }
}

}  // namespace
}  // namespace affpcl
