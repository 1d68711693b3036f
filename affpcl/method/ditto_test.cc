#include "affpcl/method/ditto.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityDitto, WithoutPullIsIndependent) {
  expect_same({"ditto", {{"lambda", 0.0}}}, {"independent"});
  expect_same({"ditto", {{"lambda", 0.0}}, 5}, {"independent"});
  expect_different({"ditto"}, {"independent"});
}

TEST(IdentityDitto, ThePublishedFormIsAnotherMethod) {
  expect_different({"ditto"}, {"ditto", {{"form", "published"}}});
}

// The common model is FedAvg's, whatever the pull.
TEST(IdentityDitto, TheCommonModelIsFedAvg) {
  const Gaussian problem({.agents = 6, .dim = 3}, 3, 0);
  for (int period : {1, 5}) {
    const std::vector<double> w = central({"ditto", {}, period}, problem);
    EXPECT_EQ(w, central({"fedavg", {}, period}, problem));
  }
}

}  // namespace
}  // namespace affpcl::identities
