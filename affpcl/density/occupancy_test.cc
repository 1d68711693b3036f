#include "affpcl/density/occupancy.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"
#include "affpcl/density/harness_test.h"
#include "affpcl/method/harness_test.h"
#include "affpcl/problem/sarsa.h"

namespace affpcl {
namespace {

// Equal agents that act alike have one law: in the first round rho = 1.
TEST(OccupancyRatio, EqualAgentsHaveRatioOne) {
  const Sarsa problem({.agents = 5, .states = 4, .actions = 3, .dim = 5, .delta_env = 0}, 2, 0);
  const std::vector<double> exact = identities::solutions(problem, {"affpcl"}, 1),
                            none =
                                identities::solutions(problem, {"affpcl", {{"ratio", "none"}}}, 1);
  for (std::size_t r = 0; r < exact.size(); ++r) EXPECT_NEAR(exact[r], none[r], 1e-12);
}

TEST(OccupancyRatio, NeedsAgentsThatAct) {
  const Tabular problem(Tabular::generate({.agents = 2}, 1, 0), Tabular::Coe::kAuto);
  EXPECT_THROW(RatioHarness(problem, ratio_of({{"ratio", "policy"}}), {}), BadInput);
}

}  // namespace
}  // namespace affpcl
