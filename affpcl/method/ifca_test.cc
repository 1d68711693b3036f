#include "affpcl/method/ifca.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityIfca, OneClusterIsFedAvg) {
  const std::map<std::string, Value> one = {{"clusters", std::int64_t{1}}, {"start_scale", 0.0}};
  for (int period : {1, 5}) expect_same({"ifca", one, period}, {"fedavg", {}, period});
  std::map<std::string, Value> published = one;
  published["form"] = "published";
  expect_same({"ifca", published}, {"fedavg"});
  expect_different({"ifca"}, {"fedavg"});
}

TEST(IdentityIfca, ThePublishedFormIsAnotherMethod) {
  expect_different({"ifca"}, {"ifca", {{"form", "published"}}});
}

}  // namespace
}  // namespace affpcl::identities
