#include "affpcl/method/independent.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityIndependent, DoesNotCommunicate) {
  expect_same({"independent", {}, 7}, {"independent"});
}

}  // namespace
}  // namespace affpcl::identities
