// What AffPCL reports of its importance correction: the alarm rings for a wrong ratio and not for a
// right one; the weights are what their definition says.
#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/problem/tabular.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

StudyResult run(const std::string& problem, const std::string& steps, const std::string& ratio,
                int seed) {
  const Study study = read_study(
      "[problem]\n" + problem + "\n[run]\nstep_size = 0.01\nseed = " + std::to_string(seed) + "\n" +
          steps + "\n[[method]]\nkind = \"affpcl\"\nratio = \"" + ratio + "\"",
      "test", {});
  return run_study(study, {1, nullptr, {}, ""});
}

const MethodResult& affpcl(const StudyResult& result) {
  return result.settings.front().methods.front();
}

double column(const MethodResult& m, std::size_t agent, const std::string& name) {
  for (std::size_t c = 0; c < m.columns.size(); ++c)
    if (m.columns[c] == name) return m.agents[agent].columns[c];
  ADD_FAILURE() << "no column " << name;
  return 0;
}

const std::string kGaussian = "kind = \"gaussian\"\nagents = 20\ndelta_env = 0.8\ndelta_obj = 0.3",
                  kTabular = "kind = \"tabular\"\nagents = 20\ndelta_env = 0.3",
                  kShort = "steps = 60\nreplicates = 10", kLong = "steps = 400\nreplicates = 1";

// 200 runs with a right ratio, each ringing with a probability below 1 %: more than 8 have one
// below 1e-3.
TEST(DriftMonitor, RarelyRingsForARightRatio) {
  int rings = 0;
  for (int seed = 1; seed <= 100; ++seed) {
    rings += !affpcl(run(kGaussian, kShort, "exact", seed)).alarm.agents.empty();
    rings += !affpcl(run(kTabular, kLong, "exact", seed)).alarm.agents.empty();
  }
  EXPECT_LE(rings, 8);
}

// In one run in a hundred thousand at most would a wrong ratio like these go unnoticed.
TEST(DriftMonitor, RingsForAWrongRatio) {
  for (int seed = 1; seed <= 5; ++seed) {
    const StudyResult g = run(kGaussian, kShort, "none", seed),
                      t = run(kTabular, kLong, "none", seed);
    EXPECT_GE(affpcl(g).alarm.agents.size(), 10u);
    EXPECT_GE(affpcl(t).alarm.agents.size(), 2u);
    EXPECT_GT(affpcl(t).alarm.largest, 4);
  }
}

TEST(DriftMonitor, MakesNoTestOfFewRounds) {
  const MethodResult m = affpcl(run(kGaussian, "steps = 100\nreplicates = 1", "none", 1));
  EXPECT_TRUE(m.alarm.agents.empty());
  EXPECT_TRUE(std::isnan(column(m, 3, "drift_z")));
  EXPECT_TRUE(m.alarm.too_short);
}

TEST(DriftMonitor, NothingDriftsWithOneAgent) {
  const MethodResult m =
      affpcl(run("kind = \"tabular\"\nagents = 1", "steps = 400\nreplicates = 2", "exact", 1));
  EXPECT_EQ(column(m, 0, "drift"), 0);
  EXPECT_EQ(column(m, 0, "drift_z"), 0);
  EXPECT_EQ(column(m, 0, "ess"), 1);
  EXPECT_TRUE(m.alarm.agents.empty());
}

// ess = 1 / E_mu^i[rho^i]; the mean over 2000 draws of rho, whose standard deviation is below 1, is
// within .12 of its expectation but in one case in 1e7.
TEST(DriftMonitor, EffectiveSampleSizeIsThatOfTheRatio) {
  const StudyResult result = run("kind = \"tabular\"\nagents = 5\nstates = 4\nredraw = \"samples\"",
                                 "steps = 4\nreplicates = 500", "exact", 3);
  const Tabular t(Tabular::generate({.agents = 5, .states = 4}, 3, 0), Tabular::Coe::kAuto);
  for (int i = 0; i < 5; ++i) {
    double own = 0, largest = 0;
    for (int s = 0; s < 4; ++s) {
      own += t.probability(i, s) * t.rho(i, s);
      largest = std::max(largest, t.rho(i, s));
    }
    const auto agent = static_cast<std::size_t>(i);
    EXPECT_NEAR(1 / column(affpcl(result), agent, "ess"), own, 0.12);
    EXPECT_NEAR(column(affpcl(result), agent, "weight_max"), largest, 1e-12);
    EXPECT_EQ(column(affpcl(result), agent, "weight_outside"), 0);
  }
}

// Algorithm 1 sends (s, g(x^c), g^b(theta^c), g^{c->i}) and gets three directions back.
TEST(DriftMonitor, CountsWhatAlgorithmOneWouldSend) {
  const MethodResult exact = affpcl(run(kGaussian, "steps = 1", "exact", 1));
  EXPECT_EQ(exact.published.up, 5 + 5 + 5 + 5);
  EXPECT_EQ(exact.published.down, 15);
  EXPECT_EQ(affpcl(run(kTabular, "steps = 1", "counts", 1)).published.up, 0);
}

// One state: the correction is 0 but for rounding, whose sign is the same in every round.
TEST(DriftMonitor, IsSilentOnRounding) {
  const std::string alike = "kind = \"tabular\"\nagents = 7\nstates = 1\ndelta_env = 0";
  const MethodResult m = affpcl(run(alike, kLong, "exact", 1));
  EXPECT_TRUE(m.alarm.agents.empty()) << m.alarm.largest;
  EXPECT_FALSE(m.alarm.too_short);
}

}  // namespace
}  // namespace affpcl
