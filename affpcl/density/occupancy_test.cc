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

// The mean square of x - y, where x and y are all agents' solutions.
double apart(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t r = 0; r < x.size(); ++r) sum += (x[r] - y[r]) * (x[r] - y[r]);
  return sum / static_cast<double>(x.size());
}

// Visits of equal agents differ by chance alone. Shrinking takes most of that away; of agents with
// other kernels it takes little.
TEST(OccupancyRatio, ShrinkingTakesChanceAway) {
  const auto noise = [](const char* shrink, double delta_env, std::uint64_t seed) {
    const Sarsa problem({.agents = 8,
                         .states = 10,
                         .actions = 2,
                         .dim = 5,
                         .temperature = 100,
                         .delta_env = delta_env,
                         .delta_obj = 0},
                        seed, 0);
    const std::map<std::string, Value> policy = {{"ratio", "policy"}, {"shrink", shrink}};
    return apart(identities::solutions(problem, {"affpcl", policy}, 400),
                 identities::solutions(problem, {"affpcl"}, 400));
  };
  for (const double delta_env : {0.0, 1.0}) {
    double shrunk = 0, plain = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      shrunk += noise("james-stein", delta_env, seed), plain += noise("none", delta_env, seed);
    EXPECT_LT(shrunk, delta_env == 0 ? plain / 2 : plain * 1.2);
  }
}

// One agent has no mixture to be shrunk to, and rho = 1.
TEST(OccupancyRatio, OneAgentIsIndependent) {
  const Sarsa problem({.agents = 1, .states = 10, .actions = 2, .dim = 5}, 3, 0);
  const std::vector<double> x = identities::solutions(problem, {"affpcl", {{"ratio", "policy"}}},
                                                      1),
                            y = identities::solutions(problem, {"independent"}, 1);
  for (std::size_t r = 0; r < x.size(); ++r) EXPECT_NEAR(x[r], y[r], 1e-12);
}

TEST(OccupancyRatio, NeedsAgentsThatAct) {
  const Tabular problem(Tabular::generate({.agents = 2}, 1, 0), Tabular::Coe::kAuto);
  EXPECT_THROW(RatioHarness(problem, ratio_of({{"ratio", "policy"}}), {}), BadInput);
}

}  // namespace
}  // namespace affpcl
