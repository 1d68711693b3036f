#include "affpcl/method/fedprox.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityFedProx, WithoutPullOrWithOneStepIsFedAvg) {
  expect_same({"fedprox", {{"mu", 0.0}}, 5}, {"fedavg", {}, 5});
  expect_same({"fedprox", {{"mu", 7.0}}}, {"fedavg"});
  expect_different({"fedprox", {{"mu", 7.0}}, 5}, {"fedavg", {}, 5});
}

// A round long enough to solve the agents' proximal problems stays where their mean displacement is
// 0: sum_i (A_i + mu I)^-1 (A_i w - b_i) = 0. FedAvg's long rounds end at the mean of the
// solutions.
TEST(FedProx, LongRoundsStayAtTheMeanProximalPoint) {
  const Three three;
  const double mu = 0.7;
  Matrix all(2, 2);
  Vector target(2);
  for (std::size_t i = 0; i < 3; ++i) {
    Matrix M = three.A[i];
    M(0, 0) += mu, M(1, 1) += mu;
    const Matrix R = inverse(M), RA = multiply(R, three.A[i]);
    const Vector Rb = multiply(R, three.b[i]);
    for (std::size_t j = 0; j < 4; ++j) all.all()[j] += RA.all()[j];
    for (std::size_t j = 0; j < 2; ++j) target[j] += Rb[j];
  }
  const Vector want = solve(all, target);
  const std::vector<double> w =
      central({.kind = "fedprox", .given = {{"mu", mu}}, .period = 200, .central_step = 0.3},
              three.problem(), 200 * 80);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(w[j], want[j], 1e-10);
}

}  // namespace
}  // namespace affpcl::identities
