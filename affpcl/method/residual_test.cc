#include "affpcl/method/residual.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityResidual, IsNeitherFedAvgNorIndependent) {
  expect_different({"residual"}, {"independent"});
  expect_different({"residual"}, {"fedavg"});
}

// With one agent and one round, x moves by w's step and then takes its own from there: two steps
// of independent learning on the same sample.
TEST(IdentityResidual, OneRoundOfOneAgentIsTwoStepsOnItsSample) {
  FiniteSystem system = Tabular::generate({.agents = 1}, 5, 0);
  system.order = {3, 3}, system.steps = 2;
  const Tabular problem(system, Tabular::Coe::kAuto);
  const std::vector<double> x = solutions(problem, {"residual"}, 1),
                            twice = solutions(problem, {"independent"}, 2);
  for (std::size_t r = 0; r < x.size(); ++r) EXPECT_NEAR(x[r], twice[r], 1e-15);
}

TEST(IdentityResidual, TheCommonModelIsFedAvg) {
  const Gaussian problem({.agents = 6, .dim = 3}, 3, 0);
  EXPECT_EQ(central({"residual", {}, 5}, problem), central({"fedavg", {}, 5}, problem));
}

}  // namespace
}  // namespace affpcl::identities
