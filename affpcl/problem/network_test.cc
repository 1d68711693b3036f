#include "affpcl/problem/network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/study/study.h"

namespace affpcl {
namespace {

// (f - y)^2 / 2 at one sample, d = 2, H = 2, by hand; and its gradient by differences.
TEST(Network, TheDirectionIsTheGradientOfHalfTheSquaredError) {
  const Network problem({.agents = 1, .dim = 2, .hidden = 2}, 3, 0);
  const Lanes lanes{0, 1};
  const Buffer s(3 * kLanes), g(6 * kLanes);
  const double phi[] = {0.7, -1.2}, y = 0.4;
  for (int r = 0; r < 2; ++r) s.data()[r * kLanes] = phi[r];
  s.data()[2 * kLanes] = y;
  std::vector<double> x = {0.3, -0.8, 1.1, 0.2, 0.9, -1.4};
  const auto loss = [&](const std::vector<double>& at) {
    const double f = at[4] * std::tanh(at[0] * phi[0] + at[1] * phi[1]) +
                     at[5] * std::tanh(at[2] * phi[0] + at[3] * phi[1]);
    return (f - y) * (f - y) / 2;
  };
  Scratch scratch;
  problem.direction(lanes, {s.data(), 3}, {}, {x.data(), 6, 1}, scratch, {g.data(), 6});
  for (std::size_t r = 0; r < 6; ++r) {
    std::vector<double> up = x, down = x;
    up[r] += 1e-5, down[r] -= 1e-5;
    EXPECT_NEAR(g.data()[r * kLanes], (loss(up) - loss(down)) / 2e-5, 1e-9);
  }
}

// At the truth the error is 0 and the mean direction is that of the noise alone: 64 agents, 200
// draws, 4.5 standard deviations of each of the 6 unknowns.
TEST(Network, TheTruthHasNoMeanDirection) {
  const Network problem({.agents = 64, .dim = 2, .hidden = 2, .delta_obj = 0.5}, 3, 0);
  const Lanes lanes{0, 64};
  const Buffer s(3 * kLanes), g(6 * kLanes), error(kLanes);
  const In x = problem.truth()->x.block(0)[Field{0, 6}];
  Scratch scratch;
  problem.error(lanes, x, scratch, {error.data(), 1});
  std::vector<double> sum(6), square(6);
  for (std::uint32_t t = 0; t < 200; ++t) {
    problem.draw({{1, 0, t}, {}}, {lanes, nullptr}, {s.data(), 3});
    problem.direction(lanes, {s.data(), 3}, {}, x, scratch, {g.data(), 6});
    for (std::size_t r = 0; r < 6; ++r)
      for (std::size_t l = 0; l < 64; ++l) {
        const double v = g.data()[r * kLanes + l];
        sum[r] += v, square[r] += v * v;
      }
  }
  for (std::size_t l = 0; l < 64; ++l) EXPECT_EQ(error.data()[l], 0);
  for (std::size_t r = 0; r < 6; ++r) EXPECT_LT(std::abs(sum[r]), 4.5 * std::sqrt(square[r]));
}

// Equal agents learn faster together. Fixed seed; one model is learnt from 20 times the samples.
TEST(Network, EqualAgentsGain) {
  const StudyResult result = run_study(read_study(R"(
[problem]
kind = "network"
delta_env = 0.0
delta_obj = 0.0
[run]
steps = 1500
step_size = 0.05
replicates = 4
[[method]]
kind = "affpcl"
ratio = "none"
[[method]]
kind = "independent"
)",
                                                  "test"),
                                       {});
  EXPECT_LT(result.settings.at(0).methods[0].vs_independent.hi, 1);
}

}  // namespace
}  // namespace affpcl
