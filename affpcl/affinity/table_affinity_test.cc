#include "affpcl/affinity/table_affinity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

PilotResult look(const TableWorld& world, double share = 0.2, int threads = 1) {
  return pilot(world.frame(), {.share = share, .seed = world.seed, .threads = threads});
}

bool says(const PilotResult& r, const std::string& word) {
  return std::any_of(r.notes.begin(), r.notes.end(),
                     [&](const std::string& n) { return n.find(word) != std::string::npos; });
}

TEST(Pilot, TakesAShareOfEveryAgentsRowsButNotTooFew) {
  const Frame frame = TableWorld{.agents = 3, .rows = 100}.frame();
  for (const auto& rows : pilot_rows(frame, {.share = 0.2})) {
    EXPECT_EQ(rows.size(), 20);
    EXPECT_EQ(std::set<std::size_t>(rows.begin(), rows.end()).size(), 20);
  }
  EXPECT_EQ(pilot_rows(frame, {.share = 0.01})[1].size(), kFewestPilot);
  EXPECT_EQ(pilot_rows(TableWorld{.rows = 4}.frame(), {})[1].size(), 4);
  EXPECT_NE(pilot_rows(frame, {.seed = 2}), pilot_rows(frame, {.seed = 1}));
  EXPECT_THROW(pilot_rows(frame, {.share = 0}), BadInput);
  EXPECT_THROW(pilot_rows(frame, {.share = 1.5}), BadInput);
}

TEST(Pilot, SameNumbersOnAnyNumberOfThreads) {
  const TableWorld world{.agents = 20};
  const PilotResult one = look(world, 0.5, 1), three = look(world, 0.5, 3);
  EXPECT_EQ(one.delta_obj.hi, three.delta_obj.hi);
  EXPECT_EQ(one.delta_env.mean, three.delta_env.mean);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(one.agents[i].loss.mean, three.agents[i].loss.mean);
    EXPECT_EQ(one.agents[i].delta_cen.hi, three.agents[i].delta_cen.hi);
  }
  EXPECT_EQ(one.distance, three.distance);
}

// The distance of noisy estimates overstates; ours must hold the true one. 60 tables of 10 agents,
// coefficients spread by .3, noise 1, 20 rows each: 90 % intervals, at least 70 % of them by
// binomial chance with 1 false alarm in 10,000 (and D is learnt from ten agents).
TEST(Pilot, DistancesOfObjectivesHoldTheTruth) {
  int held = 0;
  double naive = 0, ours = 0, right = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const TableWorld world{.agents = 10, .rows = 20, .columns = 4, .spread = 0.3, .seed = seed};
    const PilotResult r = look(world, 1);
    double largest = 0, size = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      double own = 0;
      for (std::size_t k = 0; k < 5; ++k) own += std::pow(world.coefficient(i, k), 2);
      size = std::max(size, own);
      for (std::size_t j = 0; j < i; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < 5; ++k)
          sum += std::pow(world.coefficient(i, k) - world.coefficient(j, k), 2);
        largest = std::max(largest, sum);
      }
    }
    const double truth = std::sqrt(largest / size) / 2;
    held += r.delta_obj.lo <= truth && truth <= r.delta_obj.hi;
    ours += r.delta_obj.mean / 60, right += truth / 60;
    naive +=
        std::sqrt(largest + 2 * 5 / 15.0) / std::sqrt(size) / 2 / 60;  // OLS: s^2 / (N - d) each
  }
  EXPECT_GE(held, 42);
  EXPECT_LT(std::abs(ours - right), 0.5 * (naive - right));
}

TEST(Pilot, WhoIsAlikeGainsAndWhoIsNotDoesNot) {
  const PilotResult alike = look({.agents = 20, .rows = 60, .columns = 6, .spread = 0.05}, 0.5);
  EXPECT_EQ(alike.gain, 20);
  for (const AgentPilot& a : alike.agents) EXPECT_LT(a.excess.mean, 0.6);
  const PilotResult unlike = look({.agents = 20, .rows = 200, .columns = 2, .spread = 30}, 0.5);
  EXPECT_EQ(unlike.gain, 0);
  for (const AgentPilot& a : unlike.agents) EXPECT_NEAR(a.loss.mean, 1, 0.02);
}

TEST(Pilot, NoiseShareAndLambda) {
  // Var y = 1 + 1 + 1 about, with coefficients of 1 and noise 1; columns are white, so lambda is 1.
  const PilotResult r = look({.agents = 10, .rows = 400, .spread = 0}, 1);
  EXPECT_NEAR(r.noise_share.mean, 1, 0.06);  // the frame of this test is not scaled
  EXPECT_LT(r.noise_share.lo, 1);
  EXPECT_GT(r.noise_share.hi, 1 - 0.03);
  int held = 0;
  for (const AgentPilot& a : r.agents) held += a.lambda.lo <= 1 && 1 <= a.lambda.hi + 0.05;
  EXPECT_GE(held, 6);
}

// Agents 0-4 have one set of coefficients, 5-9 another: neighbours in the order are of one kind.
TEST(Pilot, TheOrderFindsGroups) {
  TableWorld world{.agents = 10, .rows = 60, .spread = 0};
  Frame frame = world.frame();
  for (std::size_t r = 5 * 60; r < frame.rows; ++r) frame.Y[r] += 3 * frame.X[frame.rows + r];
  const PilotResult r = pilot(frame, {.share = 1});
  int changes = 0;
  for (std::size_t k = 1; k < 10; ++k) changes += (r.order[k] < 5) != (r.order[k - 1] < 5);
  EXPECT_EQ(changes, 1);
  EXPECT_GT(r.distance[0 * 10 + 9], 2);
  EXPECT_LT(r.distance[0 * 10 + 1], 1);
  EXPECT_EQ(r.distance[3 * 10 + 3], 0);
}

TEST(Pilot, DegenerateTablesAreSaidInWords) {
  const PilotResult one = look({.agents = 1});
  EXPECT_TRUE(says(one, "one agent"));
  EXPECT_TRUE(std::isnan(one.delta_env.mean));
  EXPECT_TRUE(std::isnan(one.delta_obj.mean));
  EXPECT_TRUE(says(look({.agents = 10, .rows = 200, .spread = 0}, 1), "tell the agents apart"));
  const PilotResult single = look({.agents = 6, .rows = 1});
  EXPECT_TRUE(says(single, "single row"));
  EXPECT_TRUE(std::isfinite(single.agents[0].loss.mean));
  const PilotResult few = look({.agents = 6, .rows = 5, .columns = 9});
  EXPECT_TRUE(says(few, "no lambda"));
  EXPECT_TRUE(std::isnan(few.agents[0].lambda.mean));
  EXPECT_TRUE(std::isfinite(few.agents[0].excess.mean));
}

TEST(PilotStop, ASignalEndsIt) {
  const Frame frame = TableWorld{}.frame();
  std::atomic<bool> stop = false;
  EXPECT_NO_THROW(pilot(frame, {.threads = 2, .stop = &stop}));
  stop = true;
  EXPECT_THROW(pilot(frame, {.threads = 2, .stop = &stop}), Interrupted);
}

}  // namespace
}  // namespace affpcl
