#include "affpcl/method/affpcl.h"

#include "affpcl/base/error.h"
#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

// rg^i is g^{c->i}, and nothing is left of the correction.
TEST(IdentityAffPcl, OneAgentIsIndependent) {
  const Gaussian problem({.agents = 1, .dim = 4}, 3, 0);
  EXPECT_EQ(solutions(problem, {"affpcl"}), solutions(problem, {"independent"}));
}

// x^c follows CDL-1, which is FedAvg (eq:fl), whatever the correction does.
TEST(IdentityAffPcl, TheCentralModelIsFedAvg) {
  const Gaussian problem({.agents = 70, .dim = 4}, 3, 0);
  for (int period : {1, 5}) {
    const std::vector<double> xc = central({"affpcl", {}, period}, problem),
                              fedavg = central({"fedavg", {}, period}, problem);
    for (std::size_t r = 0; r < xc.size(); ++r) EXPECT_NEAR(xc[r], fedavg[r], 1e-12);
  }
}

TEST(IdentityAffPcl, RatiosMatterWhereEnvironmentsDiffer) {
  expect_different({"affpcl"}, {"affpcl", {{"ratio", "none"}}});
  expect_different({"affpcl"}, {"independent"});
}

// eq:het-pcl-alg has no ratio, so it asks for ratio = "none"; its mean is that of the agents' own
// directions, which is also what moves x^c, and what its variant sends is less by one direction.
TEST(IdentityAffPcl, OwnObjectivesInTheMean) {
  expect_different({"affpcl", {{"ratio", "none"}}},
                   {"affpcl", {{"ratio", "none"}, {"aggregate", "own"}}});
  EXPECT_THROW(make({"affpcl", {{"aggregate", "own"}}}), BadInput);
  EXPECT_THROW(
      make({"affpcl", {{"ratio", "none"}, {"aggregate", "own"}, {"correction", "client"}}}),
      BadInput);
  const Gaussian problem({.agents = 1, .dim = 4, .delta_env = 0}, 3, 0);
  const std::map<std::string, Value> printed = {
      {"ratio", "none"}, {"aggregate", "own"}, {"objective", "known"}, {"central", "average"}};
  const std::vector<double> x = solutions(problem, {"affpcl", printed}),
                            y = solutions(problem, {"independent"});
  for (std::size_t r = 0; r < x.size(); ++r) EXPECT_NEAR(x[r], y[r], 1e-12);
}

}  // namespace
}  // namespace affpcl::identities
