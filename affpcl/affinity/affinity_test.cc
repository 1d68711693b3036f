#include "affpcl/affinity/affinity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/math/statistics.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/least_squares.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

// Two agents, one unknown, two states, by hand: A = Phi = 1, theta = 1 and 3, mu = (1, 0) and
// (1/2, 1/2).
TEST(Affinity, TwoAgentsByHand) {
  FiniteSystem sys;
  sys.agents = 2, sys.states = 2, sys.d = 1, sys.k = 1;
  sys.A = {1, 2};
  sys.Phi = {1, 1};
  sys.mu = {1, 0, 0.5, 0.5};
  sys.theta = {1, 3};
  const Affinity a = affinity(Tabular(sys, Tabular::Coe::kAuto), {});
  EXPECT_DOUBLE_EQ(a.delta_env.value, 0.5);
  EXPECT_DOUBLE_EQ(a.G_b.value, 3);                // theta^c_* = 2
  EXPECT_DOUBLE_EQ(a.delta_obj.value, 2.0 / 6.0);  // |1 - 3| / (2 * 3)
  EXPECT_DOUBLE_EQ(a.G_A.value, 2);
  EXPECT_DOUBLE_EQ(a.G_x.value, 2);    // x* = 1 and 2; x^c_* = 2 / 1.25 = 1.6
  EXPECT_DOUBLE_EQ(a.sigma.value, 8);  // 2 max(2 * 2, 3)
  EXPECT_DOUBLE_EQ(a.agents[0].lambda.value, 1);
  EXPECT_DOUBLE_EQ(a.agents[1].lambda.value, 1.5);
  EXPECT_DOUBLE_EQ(a.agents[1].kappa.value, 8 / 1.5);
  EXPECT_DOUBLE_EQ(a.agents[0].delta_cen.value, 0.25);  // TV((1,0), (3/4,1/4)) > |1 - 2| / 6
  EXPECT_NEAR(a.agents[0].nu.value, 1, 1e-12);
  EXPECT_FALSE(a.agents[0].prediction.why.empty());  // agent 0 sees one state: no noise alone
  // Agent 1: g = (-1, 1), E|g|^2 = 1. g^c = 1.6 A - 2 = (-.4, 1.2); rho^1 = (2/3, 2).
  // Own sample: u = g - g^c + rho g^c / 2 = (-1 + .4 - .4/3, 1 - 1.2 + 1.2) = (-.7333, 1); the
  // other agent's sample is always state 0: no variance. Var = ((.7333 + 1) / 2)^2.
  EXPECT_NEAR(a.agents[1].prediction.value, std::pow((1 + 0.6 + 0.4 / 3) / 2, 2), 1e-12);
}

TEST(Affinity, SingleAgentGainsNothing) {
  const Tabular alone(Tabular::generate({.agents = 1}, 3, 0), Tabular::Coe::kAuto);
  const Affinity a = affinity(alone, {});
  EXPECT_NEAR(a.agents[0].prediction.value, 1, 1e-12);
  EXPECT_EQ(a.delta_env.value, 0);
}

TEST(Affinity, EqualAgentsGainOneOverN) {
  for (int n : {2, 7, 70}) {
    const Tabular equal(Tabular::generate({.agents = n, .delta_env = 0, .delta_obj = 0}, 3, 0),
                        Tabular::Coe::kAuto);
    const Affinity a = affinity(equal, {});
    for (const AgentAffinity& agent : a.agents) EXPECT_NEAR(agent.prediction.value, 1.0 / n, 1e-12);
  }
}

// A(s) = phi phi' is singular and positive: D(s) = A(s), so nu = 1 but for Monte Carlo.
TEST(Affinity, SamplesOfRankOneHaveANu) {
  const LeastSquares problem({.agents = 4, .dim = 3}, 3, 0);
  const Affinity a = affinity(problem, {});
  for (const AgentAffinity& agent : a.agents) EXPECT_NEAR(agent.nu.value, 1, 0.2);
}

// The same numbers by Monte Carlo, through a problem that hides that it is finite: |z| < 5, 20
// values, false-alarm rate 1.2e-5.
TEST(Affinity, MonteCarloAgreesWithEnumeration) {
  class Hidden final : public Problem {
   public:
    explicit Hidden(const Tabular& t) : t_(t) { solve(); }
    Shape shape() const override { return t_.shape(); }
    void declare(Layout& w, Layout& s) const override { t_.declare(w, s); }
    void draw(const Draw& d, Agents w, Out s) const override { t_.draw(d, w, s); }
    void objective(Lanes l, In s, Out b) const override { t_.objective(l, s, b); }
    void direction(Lanes l, In s, In b, In x, Scratch& scratch, Out g) const override {
      t_.direction(l, s, b, x, scratch, g);
    }
    Facets facets() const override {
      return {.linear = &t_, .means = &t_, .densities = t_.densities()};
    }

   private:
    const Tabular& t_;
  };
  const Tabular finite(Tabular::generate({.agents = 5, .delta_env = 0.6}, 3, 0),
                       Tabular::Coe::kAuto);
  const Hidden hidden(finite);
  const Affinity exact = affinity(finite, {}),
                 sampled = affinity(hidden, {.seed = 4, .rounds = 20000});
  EXPECT_FALSE(sampled.G_A.why.empty());
  EXPECT_FALSE(sampled.sigma.why.empty());
  for (std::size_t i = 0; i < 5; ++i) {
    const AgentAffinity &a = exact.agents[i], &b = sampled.agents[i];
    EXPECT_GT(b.prediction.se, 0);
    EXPECT_LT(std::abs(a.prediction.value - b.prediction.value), 5 * b.prediction.se) << i;
    EXPECT_LT(std::abs(a.delta_cen.value - b.delta_cen.value), 5 * b.delta_cen.se + 1e-12) << i;
    EXPECT_LT(std::abs(a.nu.value - b.nu.value), 8 * b.nu.se + 1e-3) << i;  // ten batches only
    EXPECT_NEAR(a.lambda.value, b.lambda.value, 1e-12);
  }
}

// Predicted V^i against the measured stationary ratio, 10 settings x 20 agents. Samples are redrawn
// 40 times; the correlation was .997.
TEST(StatisticsAffinity, PredictionRanksTheMeasuredGain) {
  std::vector<double> predicted, measured;
  for (int setting = 0; setting < 10; ++setting) {
    const double delta = 0.1 * setting;
    const std::string text =
        "[problem]\nkind = \"tabular\"\nagents = 20\nredraw = \"samples\"\n"
        "delta_env = " +
        std::to_string(delta) + "\ndelta_obj = " + std::to_string(delta) +
        "\n[run]\nsteps = 600\ntail = 400\nreplicates = 40\nstep_size = 0.05\nseed = " +
        std::to_string(setting + 1) +
        "\n[[method]]\nkind = \"affpcl\"\n[[method]]\nkind = \"independent\"\n";
    const StudyResult result = run_study(read_study(text, "test"), {});
    const Tabular problem(Tabular::generate({.agents = 20, .delta_env = delta, .delta_obj = delta},
                                            static_cast<std::uint64_t>(setting + 1), 0),
                          Tabular::Coe::kAuto);
    const Affinity a = affinity(problem, {});
    for (std::size_t i = 0; i < 20; ++i) {
      predicted.push_back(a.agents[i].prediction.value);
      measured.push_back(result.settings[0].methods[0].agents[i].vs_independent.mean);
    }
  }
  EXPECT_GE(rank_correlation(predicted, measured), 0.9);
  RecordProperty("rank_correlation", std::to_string(rank_correlation(predicted, measured)));
}

}  // namespace
}  // namespace affpcl
