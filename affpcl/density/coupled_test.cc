#include "affpcl/density/coupled.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"

namespace affpcl::enumeration {
namespace {

TEST(TheoryDensity, CoupledRatiosAreOffByTheirError) {
  expect_bias_identity({{"ratio", "coupled"}});
}

// Frequencies of 40,000 pairs against the probabilities, at 4.5 standard deviations (two-sided
// false alarms 7e-6 each).
TEST(StatisticsDensity, CoupledPairsHaveTheirMarginalsAndAgreeAsOftenAsTheyCan) {
  const int draws = 40000;
  std::vector<double> own(kStates), mixed(kStates);
  double same = 0, tv = 0;
  Buffer a(kLanes), b(kLanes);
  for (int t = 0; t < draws; ++t) {
    problem().draw_pair({{3, 0, static_cast<std::uint32_t>(t)}, {}}, {0, kAgents}, {a.data(), 1},
                        {b.data(), 1});
    own[static_cast<std::size_t>(a.data()[1])] += 1.0 / draws;
    mixed[static_cast<std::size_t>(b.data()[1])] += 1.0 / draws;
    same += (a.data()[1] == b.data()[1]) / static_cast<double>(draws);
  }
  const auto expect_share = [&](double share, double p) {
    EXPECT_NEAR(share, p, 4.5 * std::sqrt(p * (1 - p) / draws) + 1e-9);
  };
  for (int s = 0; s < kStates; ++s) {
    expect_share(own[static_cast<std::size_t>(s)], problem().probability(1, s));
    expect_share(mixed[static_cast<std::size_t>(s)], problem().mu0(s));
    tv += std::abs(problem().probability(1, s) - problem().mu0(s)) / 2;
  }
  expect_share(same, 1 - tv);
}

}  // namespace
}  // namespace affpcl::enumeration
