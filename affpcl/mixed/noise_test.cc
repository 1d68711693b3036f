#include "affpcl/mixed/noise.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "affpcl/math/statistics.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

Learnt learnt(const TableWorld& world) {
  const auto team = serial_team();
  return decompose_with_noise(world.frame().moments(0, -1, *team), {}, *team);
}

bool same(const Learnt& l) {
  return std::all_of(l.noise.begin(), l.noise.end(), [](double v) { return v == 1; });
}

// Believed by chance in one table of twenty: at most 10 of 60 (a false alarm in 2,000).
TEST(Noise, OneNoiseForAllIsRecognised) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    wrong += !same(learnt({.agents = 12, .seed = seed}));
  EXPECT_LE(wrong, 10);
}

TEST(Noise, LoudAndQuietAgentsAreToldApart) {
  const auto noise = [](std::size_t i) { return std::exp(0.2 * static_cast<double>(i % 10) - 1); };
  const TableWorld world{.agents = 30, .rows = 30, .noise = noise};
  const Learnt l = learnt(world);
  const double s2 = l.chosen.best.variances.s2;
  std::vector<double> found, truth;
  double bias = 0;
  for (std::size_t i = 0; i < world.agents; ++i) {
    found.push_back(std::log(s2 * l.noise[i]));
    truth.push_back(2 * std::log(noise(i)));
    bias += (found[i] - truth[i]) / static_cast<double>(world.agents);
  }
  EXPECT_GT(rank_correlation(found, truth), 0.9);
  // Each has a standard error of sqrt(2 / 27); their mean of .05.
  EXPECT_NEAR(bias, 0, 0.2);
}

// A quiet agent knows its own coefficients well and is not pulled to the centre by others' noise.
TEST(Noise, QuietAgentsKeepTheirOwnModel) {
  const TableWorld world{.agents = 12, .rows = 20, .spread = 0.5, .noise = [](std::size_t i) {
                           return i == 3 ? 0.02 : 2.0;
                         }};
  const auto team = serial_team();
  const Moments m = world.frame().moments(0, -1, *team);
  const auto error = [&](const Moments& moments, const Decomposition& model) {
    const Posterior p = agent_posterior(moments, model, 3);
    double sum = 0;
    for (std::size_t j = 0; j < m.d; ++j) sum += std::pow(p.x[j] - world.coefficient(3, j), 2);
    return sum;
  };
  const Learnt l = decompose_with_noise(m, {}, *team);
  EXPECT_LT(error(l.moments, l.chosen.best), 0.1 * error(m, decompose(m, {}, *team).best));
}

TEST(Noise, OneAgentHasOneNoise) { EXPECT_TRUE(same(learnt({.agents = 1}))); }

}  // namespace
}  // namespace affpcl
