#include "affpcl/density/none.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"

namespace affpcl::enumeration {
namespace {

// rho = 1: the plain mean of g, off by E_mu0[(1 - rho) g].
TEST(TheoryDensity, NoRatioIsThePlainMean) {
  RatioHarness h(problem(), ratio_of({{"ratio", "none"}}), g_of);
  h.round({0, 3});
  for (int i = 0; i < kAgents; ++i) {
    for (int r = 0; r < 2; ++r) EXPECT_NEAR(h.rg(i, r), (g_of(0, r) + g_of(3, r)) / 2, 1e-15);
    for (int s = 0; s < kStates; ++s) EXPECT_EQ(h.rho(i, s), 1);
  }
  expect_bias_identity({{"ratio", "none"}});
}

}  // namespace
}  // namespace affpcl::enumeration
