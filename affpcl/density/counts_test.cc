#include "affpcl/density/counts.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"
#include "affpcl/density/enumerate_test.h"
#include "affpcl/density/harness_test.h"
#include "affpcl/problem/gaussian.h"

namespace affpcl {
namespace {

using Samples = RatioHarness::Samples;

double g_of(int state, int row) { return std::sin(1.0 + 3 * state + row); }

Tabular system(std::int64_t agents, int states) {
  return {Tabular::generate({.agents = agents, .states = states}, 7, 0), Tabular::Coe::kAuto};
}

std::unique_ptr<Ratio> counts(const char* counting) {
  return ratio_of({{"ratio", "counts"}, {"counting", counting}, {"shrink", "none"}});
}

TEST(Counts, AreCountsOverTheirMean) {
  const Tabular problem = system(3, 4);
  for (const bool past : {true, false}) {
    RatioHarness h(problem, counts(past ? "past" : "current"), g_of);
    std::vector<std::vector<double>> count(3, std::vector<double>(4, 0.0));
    for (const std::vector<int>& s : {std::vector<int>{0, 1, 1}, {2, 2, 1}, {0, 2, 1}, {0, 0, 0}}) {
      const auto add = [&] {
        for (std::size_t i = 0; i < 3; ++i) count[i][static_cast<std::size_t>(s[i])] += 1;
      };
      if (!past) add();
      h.round(s);
      for (int i = 0; i < 3; ++i) {
        std::vector<double> rg(3, 0.0);
        for (int state = 0; state < 4; ++state) {
          const auto c = static_cast<std::size_t>(state);
          const double all = (count[0][c] + count[1][c] + count[2][c]) / 3;
          const double rho = all > 0 ? count[static_cast<std::size_t>(i)][c] / all : 1;
          EXPECT_NEAR(h.rho(i, state), rho, 1e-12);
          for (std::size_t r = 0; r < 3; ++r)
            for (int j = 0; j < 3; ++j)
              if (s[static_cast<std::size_t>(j)] == state)
                rg[r] += rho * g_of(state, static_cast<int>(r)) / 3;
        }
        for (int r = 0; r < 3; ++r) EXPECT_NEAR(h.rg(i, r), rg[static_cast<std::size_t>(r)], 1e-12);
      }
      if (past) add();
    }
  }
}

TEST(Counts, ARoundOfSeveralSamplesCountsThemAll) {
  const Tabular problem = system(2, 3);
  RatioHarness together(problem, counts("past"), g_of), apart(problem, counts("past"), g_of);
  together.round_of({{0, 1}, {2, 2}, {0, 1}});
  for (const std::vector<int>& s : {std::vector<int>{0, 1}, {2, 2}, {0, 1}}) apart.round(s);
  together.round({0, 1}), apart.round({0, 1});
  for (int i = 0; i < 2; ++i)
    for (int state = 0; state < 3; ++state)
      EXPECT_DOUBLE_EQ(together.rho(i, state), apart.rho(i, state));
}

TEST(Counts, WithoutSamplesRhoIsOneAndOneAgentHasNothingToCorrect) {
  const Tabular two = system(2, 3), one = system(1, 3);
  RatioHarness first(two, counts("past"), g_of);
  first.round({0, 2});
  for (int i = 0; i < 2; ++i)
    for (int state = 0; state < 3; ++state) EXPECT_EQ(first.rho(i, state), 1);
  for (const char* counting : {"past", "current"}) {
    RatioHarness alone(one, counts(counting), g_of);
    for (const int s : {0, 2, 1, 1, 0}) {
      alone.round(Samples{s});
      for (int r = 0; r < 3; ++r) EXPECT_EQ(alone.rg(0, r), g_of(s, r));
    }
  }
}

// Pearson's X^2 by hand: counts (6, 0, 0, 0, 0) and (0, 2, 2, 1, 1) have mean (3, 1, 1, .5, .5), so
// X^2 = 9/3 + 1 + 1 + .5 + .5 = 6 for both, and rank - 3 = 2 over two agents weighs 1 - 1/6.
TEST(Counts, ShrinkageByHand) {
  const Tabular problem = system(2, 5);
  RatioHarness h(problem, ratio_of({{"ratio", "counts"}, {"counting", "current"}}), g_of);
  h.round_of({{0, 1}, {0, 1}, {0, 2}, {0, 2}, {0, 3}, {0, 4}});
  EXPECT_NEAR(h.rho(0, 0), 1 + 5.0 / 6, 1e-12);
  EXPECT_NEAR(h.rho(1, 0), 1 - 5.0 / 6, 1e-12);
  // Agents that saw the same have rho = 1 exactly.
  RatioHarness same(problem, ratio_of({{"ratio", "counts"}, {"counting", "current"}}), g_of);
  same.round_of({{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}});
  EXPECT_EQ(same.rho(0, 0), 1);
}

TEST(Counts, NeedFinitelyManyStates) {
  const Gaussian problem({.agents = 2}, 1, 0);
  EXPECT_THROW(RatioHarness(problem, counts("past"), g_of), BadInput);
}

TEST(Ratio, RefusesAParameterOfAnotherKind) {
  EXPECT_THROW(ratio_of({{"ratio", "exact"}, {"counting", "current"}}), BadInput);
  EXPECT_NO_THROW(ratio_of({{"ratio", "counts"}, {"counting", "current"}}));
}

TEST(TheoryDensity, PastCountsAreOffByTheErrorOfTheRatio) {
  enumeration::expect_bias_identity({{"ratio", "counts"}, {"shrink", "none"}});
  enumeration::expect_bias_identity({{"ratio", "counts"}});
}

// By exchangeability, round by round: E[h] = 0 though every single rhohat is wrong.
TEST(TheoryDensity, CountsWithTheCurrentSampleAreUnbiased) {
  const enumeration::Given current = {
      {"ratio", "counts"}, {"counting", "current"}, {"shrink", "none"}};
  for (const int rounds : {1, 2, 3})
    for (const double mean : enumeration::mean_h(current, rounds)) EXPECT_NEAR(mean, 0, 1e-12);
  double largest = 0;
  for (const double mean : enumeration::mean_h({{"ratio", "counts"}, {"shrink", "none"}}, 2))
    largest = std::max(largest, std::abs(mean));
  EXPECT_GT(largest, 1e-3);  // past counts are biased in the mean too
}

}  // namespace
}  // namespace affpcl
