// thm:lower on its own instance (apx:lower): the first of n agents has mu(s) = (1 +- q (-1)^s)/|S|,
// q = 2 min{delta, 1 / (4 sqrt(6 t))}, the others are such that mu^0 is uniform, and the sign is
// even odds. The risk E_mu0 |rhohat - rho|^2 of every estimator is at least that of the posterior
// mean, which is a finite sum: all that the samples say about the sign is how many even states the
// first agent saw, and how many the others saw.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "affpcl/density/harness_test.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

double shift(double delta, int t) { return 2 * std::min(delta, 1 / (4 * std::sqrt(6.0 * t))); }
double bound(double delta, int t) { return std::min(1 / (96.0 * t), delta * delta); }

// P(k of t samples are even) where an even state has probability (1 + q) / 2.
double binomial(int t, int k, double q) {
  return std::exp(std::lgamma(t + 1) - std::lgamma(k + 1) - std::lgamma(t - k + 1) +
                  k * std::log1p(q) + (t - k) * std::log1p(-q) - t * std::log(2.0));
}

// With a, b the probabilities of what was seen under the two signs: q^2 sum 2 a b / (a + b).
// `others` = 0: only the agent's own samples, as if mu^0 were known.
double bayes_risk(double q, int t, int others) {
  double sum = 0;
  const double away = others > 0 ? -q / others : 0;
  for (int k = 0; k <= t; ++k)
    for (int l = 0; l <= others * t; ++l) {
      const double a = binomial(t, k, q) * binomial(others * t, l, away),
                   b = binomial(t, k, -q) * binomial(others * t, l, -away);
      if (a + b > 0) sum += 2 * a * b / (a + b);
    }
  return q * q * sum;
}

TEST(TheoryLowerBound, TheBayesRiskOfThePairIsAboveIt) {
  for (const int t : {1, 2, 5, 10, 100, 1000})
    for (const int others : {0, 1, 9})
      for (const double delta : {1e-4, 1e-3, 0.01, 0.05, 0.3}) {
        if (others * t > 1000) continue;
        const double q = shift(delta, t), risk = bayes_risk(q, t, others);
        EXPECT_GE(risk, bound(delta, t)) << t << ' ' << others << ' ' << delta;
        EXPECT_LE(risk, q * q);  // that of rhohat = 1
      }
  // What studies/dre-lower-bound quotes: 3.84 times the bound.
  EXPECT_NEAR(bayes_risk(shift(0.3, 100), 100, 0) * 9600, 3.84, 0.005);
}

// Calls f(counts, probability) for all counts of t samples of a law.
template <class F>
void each_count(const std::vector<double>& law, int t, F f) {
  std::vector<int> counts(law.size());
  const auto fill = [&](const auto& self, std::size_t state, int left, double probability) -> void {
    if (state + 1 == law.size()) {
      counts[state] = left;
      f(counts, probability * std::pow(law[state], left) / std::tgamma(left + 1));
      return;
    }
    for (int k = 0; k <= left; ++k) {
      counts[state] = k;
      self(self, state + 1, left - k, probability * std::pow(law[state], k) / std::tgamma(k + 1));
    }
  };
  fill(fill, 0, t, std::tgamma(t + 1));
}

// The exact risk of one of our ratios after t samples of two agents, mean over both signs.
double risk(const std::map<std::string, Value>& given, int states, int t, double q) {
  double total = 0;
  for (const std::uint32_t m : {0u, 1u}) {
    const Tabular problem(Tabular::generate({.family = Tabular::Family::kTwoPoint,
                                             .agents = 2,
                                             .dim = 1,
                                             .states = states,
                                             .delta_env = q / 2},
                                            1, m),
                          Tabular::Coe::kAuto);
    const auto law = [&](int agent) {
      std::vector<double> mu;
      for (int s = 0; s < states; ++s) mu.push_back(problem.probability(agent, s));
      return mu;
    };
    each_count(law(0), t, [&](const std::vector<int>& own, double p_own) {
      each_count(law(1), t, [&](const std::vector<int>& other, double p_other) {
        std::vector<RatioHarness::Samples> rounds(static_cast<std::size_t>(t));
        for (const std::vector<int>& counts : {own, other}) {
          std::size_t next = 0;
          for (int s = 0; s < states; ++s)
            for (int k = 0; k < counts[static_cast<std::size_t>(s)]; ++k)
              rounds[next++].push_back(s);
        }
        RatioHarness h(problem, ratio_of(given), [](int, int) { return 1.0; });
        h.round_of(rounds);
        for (int s = 0; s < states; ++s) {
          const double gap = h.rho(0, s) - problem.rho(0, s);
          total += 0.5 * p_own * p_other * problem.mu0(s) * gap * gap;
        }
      });
    });
  }
  return total;
}

TEST(TheoryLowerBound, OurRatiosAreAboveTheBayesRisk) {
  for (const int states : {2, 4})
    for (const int t : {2, 4})
      for (const double delta : {0.02, 0.3}) {
        const double q = shift(delta, t), bayes = bayes_risk(q, t, 1);
        for (const char* ratio : {"counts", "linear", "sparse"})
          EXPECT_GE(risk({{"ratio", ratio}, {"counting", "current"}}, states, t, q), bayes)
              << ratio << ' ' << states << ' ' << t << ' ' << delta;
        EXPECT_GE(risk({{"ratio", "none"}}, states, t, q), bayes);
        // Who knows the ratio is not bound by it.
        EXPECT_LT(risk({{"ratio", "exact"}}, states, t, q), bayes);
      }
  // Counts of two states by hand, one sample each: both even or both odd gives rho = 1; else
  // rho = 2 where the first agent was and 0 elsewhere.
  const double q = 0.1, differ = (1 + q * q) / 2, right = (1 + q) * (1 + q) / 4;
  const double expected =
      (1 - differ) * q * q + right * (1 - q) * (1 - q) + (differ - right) * (1 + q) * (1 + q);
  EXPECT_NEAR(risk({{"ratio", "counts"}, {"counting", "current"}}, 2, 1, q), expected, 1e-14);
}

}  // namespace
}  // namespace affpcl
