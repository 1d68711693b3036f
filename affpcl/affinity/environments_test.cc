#include "affpcl/affinity/environments.h"

#include <gtest/gtest.h>

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

Environments apart(const TableWorld& world) {
  const Frame frame = world.frame();
  const auto team = serial_team();
  return environments(frame, pilot_rows(frame, {.share = 1, .seed = world.seed}), *team);
}

// N(0, 1) and N(2, 1): TV = 2 Phi(1) - 1 between them, half of it to their mixture. With 2,000 rows
// each the set is next to the best one, and the standard error is .008.
TEST(Environments, TwoGaussiansAreAsFarApartAsTheyAre) {
  const double tv = std::erf(1 / std::sqrt(2.0));
  const Environments e =
      apart({.agents = 2, .rows = 2000, .columns = 1, .shift = [](std::size_t i) {
               return 2.0 * static_cast<double>(i);
             }});
  for (const Estimate& one : e.to_mixture) {
    EXPECT_NEAR(one.mean, tv / 2, 0.03);
    EXPECT_LT(one.lo, tv / 2);
    EXPECT_GT(one.hi, tv / 2 - 0.02);
  }
  EXPECT_NEAR(e.largest.mean, tv, 0.06);
}

// Equal agents: a bound that holds in expectation is 0 or less on average, whoever is picked as the
// farthest. 300 tables of 8 agents with 12 rows; 4 standard errors.
TEST(Environments, EqualAgentsAreNotApartOnAverage) {
  std::vector<double> largest, one;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Environments e = apart({.agents = 8, .rows = 12, .seed = seed});
    largest.push_back(e.largest.mean);
    one.push_back(e.to_mixture[3].mean);
  }
  for (const auto& values : {largest, one}) {
    const Estimate e = estimate(values);
    EXPECT_LT(e.mean - 4 * (e.hi - e.mean) / 1.65, 0);
  }
}

// Where agents differ the bound stays below the truth on average, also with few rows.
TEST(Environments, FewRowsDoNotOverstate) {
  const double tv = std::erf(0.5 / std::sqrt(2.0));
  std::vector<double> largest;
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    largest.push_back(apart({.agents = 2,
                             .rows = 10,
                             .columns = 1,
                             .shift = [](std::size_t i) { return static_cast<double>(i); },
                             .seed = seed})
                          .largest.mean);
  const Estimate e = estimate(largest);
  EXPECT_LT(e.mean - 4 * (e.hi - e.mean) / 1.65, tv);
  EXPECT_GT(e.mean, 0.1);
}

TEST(Environments, OneRowOrOneAgentIsNotCompared) {
  EXPECT_TRUE(std::isnan(apart({.agents = 1}).largest.mean));
  const Environments e = apart({.agents = 3, .rows = 1});
  EXPECT_TRUE(std::isnan(e.largest.mean));
  EXPECT_TRUE(std::isnan(e.to_mixture[0].mean));
}

}  // namespace
}  // namespace affpcl
