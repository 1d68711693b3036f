#include "affpcl/method/fine_tune.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityFineTune, SwitchingAtTheEndsIsFedAvgOrIndependent) {
  for (int period : {1, 5}) {
    expect_same({"fine_tune", {{"together", 1.0}}, period}, {"fedavg", {}, period});
    expect_same({"fine_tune", {{"together", 0.0}}, period}, {"independent"});
  }
  expect_different({"fine_tune"}, {"fedavg"});
  expect_different({"fine_tune"}, {"independent"});
}

}  // namespace
}  // namespace affpcl::identities
