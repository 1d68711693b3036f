#include "affpcl/density/fixed_point.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"

namespace affpcl::enumeration {
namespace {

// Both forms of the paper's iteration with alpha_t = 4/(t + 11) come to the ratio. Fixed seed; the
// tolerance only tells convergence from none.
TEST(StatisticsDensity, TheFixedPointIterationsConverge) {
  for (const char* form : {"minus-one", "ratio"}) {
    RatioHarness h(problem(), ratio_of({{"ratio", "fixed-point"}, {"form", form}}), g_of);
    h.steps().ratio.schedule = {.kind = Schedule::Kind::kDiminishing, .t0 = 10};
    Buffer s(kLanes);
    for (int t = 0; t < 20000; ++t) {
      problem().draw({{5, 0, static_cast<std::uint32_t>(t)}, {}}, {{0, kAgents}, nullptr},
                     {s.data(), 1});
      h.round(Samples{static_cast<int>(s.data()[0]), static_cast<int>(s.data()[1])});
    }
    for (int i = 0; i < kAgents; ++i)
      for (int k = 0; k < kStates; ++k) EXPECT_NEAR(h.rho(i, k), problem().rho(i, k), 0.15) << form;
  }
}

}  // namespace
}  // namespace affpcl::enumeration
