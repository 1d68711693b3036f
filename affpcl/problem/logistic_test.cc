#include "affpcl/problem/logistic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "affpcl/base/error.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

// E f(phi, xi) under an agent's own environment, d = 1, by the trapezoidal rule.
template <class F>
double mean_of(const Logistic& problem, int agent, F f) {
  double sum = 0;
  const double h = 1.0 / 8, m = problem.mean({0, 3}).at(0, agent);
  for (double z = -9; z <= 9; z += h)
    for (double xi = -9; xi <= 9; xi += h)
      sum += h * h * std::exp(-(z * z + xi * xi) / 2) / (2 * std::numbers::pi) * f(m + z, xi);
  return sum;
}

// The solutions of agents and of the centre are where the mean directions are 0, through
// direction() itself, and theta^c_* is where the mean of coe() is.
TEST(Logistic, TheTruthHasNoMeanDirection) {
  const Logistic problem({.agents = 3,
                          .dim = 1,
                          .delta_env = 0.3,
                          .delta_obj = 0.7,
                          .labels = Logistic::Labels::kProbability},
                         5, 0);
  const Truth& truth = *problem.truth();
  const Lanes lanes{0, 3};
  Scratch scratch;
  const Buffer state(3 * kLanes), one(kLanes), b(kLanes), three(3 * kLanes);
  const In s{state.data(), 3};
  double central = 0, theta[3] = {};
  for (int i = 0; i < 3; ++i) {
    const double x = truth.x.block(0)[Field{0, 1}].p[i], w = problem.weights(i)[0];
    const auto g = [&](double phi, double xi, double at) {
      std::fill_n(state.data(), kLanes, phi);
      std::fill_n(state.data() + kLanes, kLanes, xi);
      std::fill_n(state.data() + 2 * kLanes, kLanes, 1 / (1 + std::exp(-w * phi - xi)));
      problem.objective(lanes, s, {b.data(), 1});
      problem.direction(lanes, s, {b.data(), 1}, {&at, 1, 1}, scratch, {one.data(), 1});
      return one.data()[i];
    };
    const auto mean_g = [&](double at) {
      return mean_of(problem, i, [&](double phi, double xi) { return g(phi, xi, at); });
    };
    EXPECT_NEAR(mean_g(x), 0, 1e-12);
    EXPECT_GT(mean_g(x + 0.1), 0.01);
    EXPECT_GT(std::abs(x - w), 0.01);  // x cannot explain xi, and shrinks
    central += mean_g(truth.xc[0]);
    for (int r = 0; r < 3; ++r)
      theta[r] += mean_of(problem, i, [&](double phi, double xi) {
        g(phi, xi, 0);
        problem.coe(lanes, s, {}, {truth.thetac.data(), 3, 1}, {}, {three.data(), 3});
        return three.data()[r * kLanes + i];
      });
  }
  EXPECT_NEAR(central, 0, 1e-12);
  for (const double mean : theta) EXPECT_NEAR(mean, 0, 1e-12);
}

// Binary labels have the stated probability: 20,000 draws, 4.5 standard deviations.
TEST(Logistic, LabelsHaveTheirProbability) {
  const Logistic problem({.agents = 64, .dim = 2}, 2, 0);
  const Lanes lanes{0, 64};
  const Buffer state(4 * kLanes);
  double gap = 0, variance = 0;
  for (std::uint32_t t = 0; t < 320; ++t) {
    problem.draw({{1, 0, t}, {}}, {lanes, nullptr}, {state.data(), 4});
    for (int i = 0; i < 64; ++i) {
      const auto row = [&](int r) { return state.data()[r * kLanes + i]; };
      const std::span<const double> w = problem.weights(i);
      const double u = w[0] * row(0) + w[1] * row(1) + row(2), p = 1 / (1 + std::exp(-u)),
                   y = row(3);
      EXPECT_TRUE(y == 0 || y == 1);
      gap += y - p, variance += p * (1 - p);
    }
  }
  EXPECT_LT(std::abs(gap), 4.5 * std::sqrt(variance));
}

double gain(const char* labels, double delta) {
  const StudyResult result = run_study(
      read_study(std::string("[problem]\nkind = \"logistic\"\nagents = 20\ndelta_env = 0.0\n"
                             "delta_obj = ") +
                     std::to_string(delta) + "\nlabels = \"" + labels + R"("
[run]
steps = 3000
step_size = 0.05
replicates = 4
tail = 1000
[[method]]
kind = "affpcl"
ratio = "none"
objective = "known"
[[method]]
kind = "independent"
)",
                 "test"),
      {});
  return result.settings.at(0).methods[0].vs_independent.mean;
}

// With one environment rho = 1, and 20 equal agents gain by 20. What collaboration cannot average
// is the noise of an agent's own labels. Fixed seed; the bounds are loose.
TEST(Logistic, CollaborationHelpsAsFarAsNoiseIsShared) {
  const double equal = gain("probability", 0), near = gain("probability", 0.3),
               far = gain("probability", 1), binary = gain("binary", 0.3);
  EXPECT_NEAR(equal, 0.05, 0.02);
  EXPECT_LT(equal, near);
  EXPECT_LT(near, 0.15);
  EXPECT_LT(near, far);
  EXPECT_LT(far, 0.5);
  EXPECT_GT(binary, 0.6);
  EXPECT_LT(binary, 0.95);
}

TEST(Logistic, HasNoMeansSoARelativeScheduleIsRefused) {
  const Logistic problem({.agents = 3}, 1, 0);
  EXPECT_EQ(problem.means(), nullptr);
  EXPECT_THROW(run_study(read_study(R"(
[problem]
kind = "logistic"
[run]
step_size = {schedule = "diminishing"}
[[method]]
kind = "independent"
)",
                                    "test"),
                         {}),
               BadInput);
}

}  // namespace
}  // namespace affpcl
