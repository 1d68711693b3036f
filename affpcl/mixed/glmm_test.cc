#include "affpcl/mixed/glmm.h"

#include <gtest/gtest.h>

#include "affpcl/mixed/glmm_world_test.h"

namespace affpcl {
namespace {

GlmmLearnt learn(const GlmmWorld& world, GlmmOptions options = {}) {
  const auto team = serial_team();
  if (options.evidence.random.empty())
    for (std::size_t j = 0; j < world.d; ++j) options.evidence.random.push_back(j);
  options.evidence.bound = world.family == Family::kMultinomial;
  return fit_glmm(world.table, world.likelihood(), options, *team);
}

class EveryFamilysModel : public testing::TestWithParam<Family> {};

// 150 agents with 30 rows. An estimated standard deviation of a random effect has a standard error
// of .05 to .1 here (larger still for classes). The seed is fixed; how often .3 would be exceeded over
// seeds was not simulated.
TEST_P(EveryFamilysModel, FindsTheStandardDeviationsOfRandomEffects) {
  GlmmWorld world{.family = GetParam(), .agents = 150, .rows = 30};
  world.make();
  const GlmmLearnt learnt = learn(world, {.scalar = false, .full = false});
  EXPECT_TRUE(learnt.best.converged);
  EXPECT_LT(learnt.best.rounds, 40);
  EXPECT_FALSE(learnt.best.singular);
  for (std::size_t j = 0; j < learnt.best.D.rows(); ++j)
    EXPECT_NEAR(std::sqrt(learnt.best.D(j, j)), world.sd[j % 2], 0.3) << j;
  for (std::size_t j = 0; j < learnt.best.point.centre.size(); ++j) {
    const double se = std::sqrt(learnt.best.centre_cov(j, j));
    EXPECT_LT(se, 0.2);
    EXPECT_NEAR(learnt.best.point.centre[j], j % 2 == 0 ? world.intercept : 0.4, 4.5 * se) << j;
  }
}

TEST_P(EveryFamilysModel, EndsWhereTheSlopeIsZero) {
  GlmmWorld world{.family = GetParam(), .agents = 40, .rows = 15};
  world.make();
  const GlmmLearnt learnt = learn(world, {.centre_precision = 0, .scalar = false});
  const auto team = serial_team();
  const Likelihood likelihood = world.likelihood();
  for (const Glmm& model : learnt.tried) {
    GlmmEvidence evidence(world.table, likelihood,
                          {.random = {0, 1}, .bound = GetParam() == Family::kMultinomial}, *team);
    const EvidenceSums sums = evidence(model.point, true);
    EXPECT_NEAR(sums.value, model.log_likelihood, 1e-8);
    if (model.covariance == Covariance::kFull && model.bic > learnt.best.bic) continue;  // given up
    EXPECT_TRUE(model.converged);
    for (double v : sums.centre) EXPECT_NEAR(v, 0, 1e-4);
    for (double v : sums.psi) EXPECT_NEAR(v, 0, 1e-4);
    // A variance that predictors share has the sum of their slopes.
    const std::size_t q = model.D.rows(), apart = model.covariance == Covariance::kFull ? q : 2;
    for (std::size_t j = 0; j < apart; ++j) {
      double slope = 0;
      for (std::size_t k = j; k < q; k += apart) slope += sums.D_slope(k, k);
      if (model.D(j, j) > 0) {
        EXPECT_NEAR(slope * model.D(j, j), 0, 1e-4);
      } else {
        EXPECT_LE(slope, 1e-6);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamilysModel, testing::ValuesIn(kEveryFamily), family_test_name);

TEST(Glmm, NoVarianceIsReachedAndReported) {
  GlmmWorld world{.agents = 60, .rows = 20, .sd = {0.8, 0.0}, .seed = 2};
  world.make();
  const GlmmLearnt learnt = learn(world, {.scalar = false, .full = false});
  EXPECT_TRUE(learnt.best.converged);
  EXPECT_EQ(learnt.best.D(1, 1), 0);
  EXPECT_TRUE(learnt.best.singular);
  EXPECT_GT(learnt.best.D(0, 0), 0.2);
}

// A normal distribution cut off at 0 is larger on average than where it is largest.
TEST(Glmm, AVarianceIsNotBelowZero) {
  GlmmWorld world{.agents = 60, .rows = 20, .sd = {0.8, 0.0}, .seed = 2};
  world.make();
  const GlmmLearnt learnt = learn(world, {.scalar = false, .full = false});
  GlmmLearnt loose = learnt;  // an agent without rows: nothing is shrunk
  std::fill(loose.curvatures.begin(), loose.curvatures.end(), 0.0);
  for (std::size_t j = 0; j < 2; ++j) {
    const double at = learnt.best.D(j, j), sd = std::sqrt(learnt.best.spread_cov(j, j));
    double mass = 0, sum = 0;
    for (double v = 5e-5; v < at + 10 * sd; v += 1e-4) {
      const double p = std::exp(-(v - at) * (v - at) / (2 * sd * sd));
      mass += p, sum += p * v;
    }
    Vector along(2);
    along[j] = 1;
    EXPECT_NEAR(glmm_wider(loose, 0, along), sum / mass - at, 1e-4) << j;
  }
}

TEST(Glmm, NoClassIsSpecial) {
  GlmmWorld world{.family = Family::kMultinomial, .agents = 40, .rows = 15};
  world.make();
  const Glmm before = learn(world).best;
  for (double& y : world.y) y = std::fmod(y + 1, 3);
  const Glmm after = learn(world).best;
  EXPECT_EQ(before.covariance, after.covariance);
  EXPECT_NEAR(before.log_likelihood, after.log_likelihood, 1e-4);
  // Logits of the classes, whose names have moved on by one.
  const Matrix B = class_basis(3);
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t j = 0; j < 2; ++j) {
      double was = 0, is = 0;
      for (std::size_t a = 0; a < 2; ++a) {
        was += B(k, a) * before.point.centre[a * 2 + j];
        is += B((k + 1) % 3, a) * after.point.centre[a * 2 + j];
      }
      EXPECT_NEAR(was, is, 1e-3);
    }
}

TEST(Glmm, AgentsOfOneClassDoNotTakeOverTheCentre) {
  GlmmWorld world{.agents = 40, .rows = 20, .sd = {0.5, 0.2}, .intercept = -2};
  world.make();
  const double before = learn(world).best.point.centre[0];
  for (std::size_t r = 0; r < 3 * world.rows; ++r) world.y[r] = 0;  // three agents without a yes
  const GlmmLearnt learnt = learn(world);
  EXPECT_NEAR(learnt.best.point.centre[0], before, 0.4);
  for (std::size_t i = 0; i < 3; ++i) {
    const Posterior own = glmm_posterior(learnt, i);
    EXPECT_LT(own.x[0], learnt.best.point.centre[0]);
    EXPECT_GT(own.x[0], -6);
  }
}

TEST(Glmm, SeparatedRowsHaveAFiniteCentre) {
  GlmmWorld world{.agents = 10, .rows = 20, .sd = {0.1, 0.1}};
  world.make();
  for (std::size_t r = 0; r < world.y.size(); ++r) world.y[r] = world.X[world.y.size() + r] > 0;
  const GlmmLearnt learnt = learn(world);
  EXPECT_LT(std::abs(learnt.best.point.centre[1]), 60);
  EXPECT_GT(learnt.best.point.centre[1], 5);
}

TEST(Glmm, HasTheSameBitsOnAnyTeam) {
  GlmmWorld world{.agents = 40};
  world.make();
  const auto one = serial_team(), three = thread_team(3);
  const GlmmOptions options{.evidence = {.random = {0, 1}}};
  const GlmmLearnt a = fit_glmm(world.table, world.likelihood(), options, *one),
                   b = fit_glmm(world.table, world.likelihood(), options, *three);
  EXPECT_EQ(a.best.point.centre, b.best.point.centre);
  EXPECT_EQ(a.best.D, b.best.D);
  EXPECT_EQ(a.best.log_likelihood, b.best.log_likelihood);
  EXPECT_EQ(a.modes, b.modes);
}

TEST(Glmm, APosteriorIsThatOfTheGaussianModel) {
  GlmmWorld world{.family = Family::kGaussian};
  world.make();
  const GlmmLearnt learnt = learn(world, {.scalar = false, .full = false});
  Moments m(world.agents, 2);
  for (std::size_t i = 0; i < world.agents; ++i)
    for (std::size_t r = 0; r < world.rows; ++r) {
      const std::size_t at = i * world.rows + r;
      m.add(i, std::vector{1.0, world.X[world.y.size() + at]}, world.y[at]);
    }
  const auto team = serial_team();
  const Variances variances{learnt.best.D.all(), std::exp(learnt.best.point.psi[0])};
  const Decomposition same = decompose_known(m, variances, 0.01, *team);
  for (std::size_t j = 0; j < 2; ++j)
    EXPECT_NEAR(same.centre[j], learnt.best.point.centre[j], 1e-6);
  const Posterior expected = agent_posterior(m, same, 3), found = glmm_posterior(learnt, 3);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(found.x[j], expected.x[j], 1e-6);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(found.smoother[j], expected.smoother[j], 1e-6);
}

}  // namespace
}  // namespace affpcl
