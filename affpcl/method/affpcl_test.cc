#include "affpcl/method/affpcl.h"

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

}  // namespace
}  // namespace affpcl::identities
