#include "affpcl/method/pfedme.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityPFedMe, WithoutPullIsIndependent) {
  expect_same({"pfedme", {{"lambda", 0.0}}}, {"independent"});
  expect_same({"pfedme", {{"lambda", 0.0}}, 4, 2}, {"independent", {}, 1, 2});
  expect_different({"pfedme"}, {"independent"});
}

TEST(IdentityPFedMe, ThePublishedFormIsAnotherMethod) {
  expect_different({"pfedme"}, {"pfedme", {{"form", "published"}}});
}

// pFedMe as published, one proximal gradient step and one local step: theta = w - alpha g(w), w
// moves by -outer lambda alpha mean g(w); with outer lambda = 1 that is FedAvg's w, and theta is
// one step from it.
TEST(IdentityPFedMe, PublishedByHand) {
  const Gaussian problem({.agents = 6, .dim = 3}, 3, 0);
  const std::map<std::string, Value> given = {
      {"form", "published"}, {"inner", std::int64_t{1}}, {"lambda", 4.0}, {"outer", 0.25}};
  const std::vector<double> w = central({"pfedme", given}, problem),
                            fedavg = central({"fedavg"}, problem);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_NEAR(w[r], fedavg[r], 1e-12);
}

}  // namespace
}  // namespace affpcl::identities
