#include "affpcl/method/fedavg.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

// A single agent's mean is its own step.
TEST(IdentityFedAvg, OneAgentIsIndependent) {
  const Gaussian problem({.agents = 1, .dim = 4}, 3, 0);
  for (int period : {1, 5}) {
    const std::vector<double> x = solutions(problem, {"fedavg", {}, period}),
                              alone = solutions(problem, {"independent"});
    for (std::size_t r = 0; r < x.size(); ++r) EXPECT_NEAR(x[r], alone[r], 1e-12);
  }
}

}  // namespace
}  // namespace affpcl::identities
