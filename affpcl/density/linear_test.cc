#include "affpcl/density/linear.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"
#include "affpcl/density/harness_test.h"

namespace affpcl {
namespace {

using Samples = RatioHarness::Samples;
using Given = std::map<std::string, Value>;

double g_of(int state, int row) { return std::sin(1.0 + 3 * state + row); }

Tabular generated(std::int64_t agents, int states) {
  return {Tabular::generate({.agents = agents, .states = states}, 7, 0), Tabular::Coe::kAuto};
}

Given with(Given given, const Given& more) {
  given.insert(more.begin(), more.end());
  return given;
}

std::vector<Samples> some_rounds(int agents, int states) {
  std::vector<Samples> rounds;
  for (int t = 0; t < 30; ++t) {
    Samples s;
    for (int i = 0; i < agents; ++i) {
      const double u = uniform({11, 0, static_cast<std::uint32_t>(t)}, i, Purpose::kSample, 0);
      s.push_back(static_cast<int>(states * u * (i % 2 == 0 ? u : 1)));
    }
    rounds.push_back(s);
  }
  return rounds;
}

TEST(Linear, OneHotIsCounting) {
  const Tabular problem = generated(5, 6);
  for (const char* counting : {"past", "current"})
    for (const char* shrink : {"none", "james-stein"}) {
      const Given both = {{"counting", counting}, {"shrink", shrink}};
      RatioHarness counts(problem, ratio_of(with({{"ratio", "counts"}}, both)), g_of);
      RatioHarness linear(
          problem, ratio_of(with({{"ratio", "linear"}, {"features", "one-hot"}}, both)), g_of);
      for (const Samples& s : some_rounds(5, 6)) {
        counts.round(s), linear.round(s);
        for (int i = 0; i < 5; ++i) {
          for (int r = 0; r < 3; ++r) EXPECT_NEAR(counts.rg(i, r), linear.rg(i, r), 1e-12);
          for (int state = 0; state < 6; ++state)
            EXPECT_NEAR(counts.rho(i, state), linear.rho(i, state), 1e-12);
        }
      }
    }
}

// mu = (1, 3)/4 and (2, 2)/4: four samples of each agent can have exactly these moments, and then
// the learnt ratio is the exact one, for one-hot features and for any other basis.
TEST(Linear, TrueMomentsGiveTheExactRatio) {
  FiniteSystem system = Tabular::generate({.agents = 2, .dim = 2, .states = 2}, 3, 0);
  system.mu = {0.25, 0.75, 0.5, 0.5};
  system.p = 2;
  system.psi = {1, 2, 1, -0.5};  // psi(0), psi(1)
  const Tabular problem(system, Tabular::Coe::kAuto);
  for (const char* features : {"one-hot", "problem", "polynomial"}) {
    RatioHarness h(
        problem, ratio_of({{"ratio", "linear"}, {"features", features}, {"shrink", "none"}}), g_of);
    RatioHarness exact(problem, ratio_of({{"ratio", "exact"}}), g_of);
    h.round_of({{0, 0}, {1, 0}, {1, 1}, {1, 1}});
    for (const Samples& s : {Samples{0, 1}, {1, 1}}) {
      // Seen again and again: the moments of the past stay the true ones.
      RatioHarness fresh(
          problem, ratio_of({{"ratio", "linear"}, {"features", features}, {"shrink", "none"}}),
          g_of);
      fresh.round_of({{0, 0}, {1, 0}, {1, 1}, {1, 1}});
      fresh.round(s), exact.round(s);
      for (int i = 0; i < 2; ++i) {
        for (int state = 0; state < 2; ++state)
          EXPECT_NEAR(fresh.rho(i, state), problem.rho(i, state), 1e-12) << features;
        for (int r = 0; r < 2; ++r) EXPECT_NEAR(fresh.rg(i, r), exact.rg(i, r), 1e-12);
      }
    }
  }
}

// Features that depend on each other, a feature that is always zero, fewer samples than features:
// nothing is NaN, and what the samples do tell is unchanged.
TEST(Linear, ASingularGramMatrixIsNoTrouble) {
  FiniteSystem system = Tabular::generate({.agents = 3, .dim = 2, .states = 3}, 3, 0);
  system.p = 5;
  system.psi = {1, 0, 0, 1, 0, /**/ 0, 1, 0, 1, 0, /**/ 0, 0, 1, 1, 0};
  const Tabular problem(system, Tabular::Coe::kAuto);
  RatioHarness counts(problem, ratio_of({{"ratio", "counts"}, {"shrink", "none"}}), g_of);
  RatioHarness linear(problem, ratio_of({{"ratio", "linear"}, {"shrink", "none"}}), g_of);
  std::vector<bool> seen(3, false);
  for (const Samples& s : some_rounds(3, 3)) {
    counts.round(s), linear.round(s);
    for (int i = 0; i < 3; ++i)
      for (int state = 0; state < 3; ++state) {
        ASSERT_TRUE(std::isfinite(linear.rho(i, state)));
        if (seen[static_cast<std::size_t>(state)]) {
          EXPECT_NEAR(counts.rho(i, state), linear.rho(i, state), 1e-9);
        }
      }
    for (const int state : s) seen[static_cast<std::size_t>(state)] = true;
  }
}

TEST(Linear, OneAgentHasNothingToCorrect) {
  const Tabular problem = generated(1, 4);
  for (const char* features : {"one-hot", "polynomial", "bumps", "fourier"}) {
    RatioHarness h(problem, ratio_of({{"ratio", "linear"}, {"features", features}}), g_of);
    for (const int s : {0, 3, 1, 2, 2}) {
      h.round(Samples{s});
      for (int r = 0; r < 3; ++r) EXPECT_EQ(h.rg(0, r), g_of(s, r)) << features;
    }
  }
}

TEST(TheoryDensity, LinearRatiosAreOffByTheirError) {
  enumeration::expect_bias_identity(
      {{"ratio", "linear"}, {"features", "polynomial"}, {"ridge", 0.1}});
}

}  // namespace
}  // namespace affpcl
