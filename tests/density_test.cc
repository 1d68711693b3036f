// What learnt ratios do to the direction, exactly: every history of a small finite system, weighted
// with its probability.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "affpcl/density/harness_test.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

constexpr int kAgents = 2, kStates = 4;
using Samples = RatioHarness::Samples;

double g_of(int state, int row) { return std::sin(1.0 + 3 * state + row); }

const Tabular& problem() {
  static const Tabular kProblem(
      Tabular::generate({.agents = kAgents, .dim = 2, .states = kStates, .delta_env = 0.8}, 4, 0),
      Tabular::Coe::kAuto);
  return kProblem;
}

// Calls f(history, probability) for all histories of `rounds` rounds.
template <class F>
void enumerate(int rounds, F f) {
  int all = 1;
  for (int k = 0; k < rounds * kAgents; ++k) all *= kStates;
  for (int number = 0; number < all; ++number) {
    std::vector<Samples> history(static_cast<std::size_t>(rounds), Samples(kAgents));
    double probability = 1;
    int rest = number;
    for (Samples& s : history)
      for (int i = 0; i < kAgents; ++i) {
        s[static_cast<std::size_t>(i)] = rest % kStates;
        probability *= problem().probability(i, rest % kStates);
        rest /= kStates;
      }
    f(history, probability);
  }
}

using Given = std::map<std::string, Value>;

// eq:correction: given the past, the direction is off by
// E_mu0[(rhohat - rho)(A x^c - Phi theta^c)], whatever rhohat is.
void expect_bias_identity(const Given& given) {
  double largest = 0;
  enumerate(2, [&](const std::vector<Samples>& past, double) {
    std::vector<double> bias(kAgents * 2, 0.0), predicted(kAgents * 2, 0.0);
    enumerate(1, [&](const std::vector<Samples>& now, double probability) {
      RatioHarness h(problem(), ratio_of(given), g_of);
      for (const Samples& s : past) h.round(s);
      h.round(now[0]);
      for (int i = 0; i < kAgents; ++i)
        for (int r = 0; r < 2; ++r) {
          const auto at = static_cast<std::size_t>(2 * i + r);
          const int own = now[0][static_cast<std::size_t>(i)];
          bias[at] += probability * (h.rg(i, r) - g_of(own, r));
          predicted[at] = 0;
          for (int s = 0; s < kStates; ++s)
            predicted[at] += problem().mu0(s) * (h.rho(i, s) - problem().rho(i, s)) * g_of(s, r);
        }
    });
    for (std::size_t at = 0; at < bias.size(); ++at) {
      EXPECT_NEAR(bias[at], predicted[at], 1e-12);
      largest = std::max(largest, std::abs(bias[at]));
    }
  });
  EXPECT_GT(largest, 0.05);  // or the identity would say nothing
}

std::vector<double> mean_h(const Given& given, int rounds) {
  std::vector<double> mean(kAgents * 2, 0.0);
  enumerate(rounds, [&](const std::vector<Samples>& history, double probability) {
    RatioHarness h(problem(), ratio_of(given), g_of);
    for (const Samples& s : history) h.round(s);
    for (int i = 0; i < kAgents; ++i)
      for (int r = 0; r < 2; ++r)
        mean[static_cast<std::size_t>(2 * i + r)] +=
            probability * (h.rg(i, r) - g_of(history.back()[static_cast<std::size_t>(i)], r));
  });
  return mean;
}

TEST(TheoryDensity, PastCountsAreOffByTheErrorOfTheRatio) {
  expect_bias_identity({{"ratio", "counts"}, {"shrink", "none"}});
  expect_bias_identity({{"ratio", "counts"}});
}

// By exchangeability, round by round: E[h] = 0 though every single rhohat is wrong.
TEST(TheoryDensity, CountsWithTheCurrentSampleAreUnbiased) {
  const Given current = {{"ratio", "counts"}, {"counting", "current"}, {"shrink", "none"}};
  for (const int rounds : {1, 2, 3})
    for (const double mean : mean_h(current, rounds)) EXPECT_NEAR(mean, 0, 1e-12);
  double largest = 0;
  for (const double mean : mean_h({{"ratio", "counts"}, {"shrink", "none"}}, 2))
    largest = std::max(largest, std::abs(mean));
  EXPECT_GT(largest, 1e-3);  // past counts are biased in the mean too
}

}  // namespace
}  // namespace affpcl
