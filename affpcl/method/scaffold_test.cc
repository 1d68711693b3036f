#include "affpcl/method/scaffold.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityScaffold, WithOneLocalStepIsFedAvg) {
  expect_same({"scaffold"}, {"fedavg"});
  expect_same({"scaffold", {}, 1, 3}, {"fedavg", {}, 1, 3});
  expect_different({"scaffold", {}, 5}, {"fedavg", {}, 5});
}

}  // namespace
}  // namespace affpcl::identities
