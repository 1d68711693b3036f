#include "affpcl/density/exact.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"

namespace affpcl::enumeration {
namespace {

// rg^i = (1/n) sum_j rho^i(s_j) g_j for every joint sample, and rho^i at any state.
TEST(TheoryDensity, ExactRatiosAreThoseOfTheProblem) {
  enumerate(1, [&](const std::vector<Samples>& now, double) {
    RatioHarness h(problem(), ratio_of({{"ratio", "exact"}}), g_of);
    h.round(now[0]);
    for (int i = 0; i < kAgents; ++i) {
      for (int r = 0; r < 2; ++r) {
        double want = 0;
        for (const int s : now[0]) want += problem().rho(i, s) * g_of(s, r) / kAgents;
        EXPECT_NEAR(h.rg(i, r), want, 1e-12);
      }
      for (int s = 0; s < kStates; ++s) EXPECT_NEAR(h.rho(i, s), problem().rho(i, s), 1e-12);
    }
  });
}

TEST(TheoryDensity, ExactRatiosAreUnbiased) {
  for (const double mean : mean_h({{"ratio", "exact"}}, 1)) EXPECT_NEAR(mean, 0, 1e-12);
}

}  // namespace
}  // namespace affpcl::enumeration
