#include "affpcl/method/per_fedavg.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

// Where mean_i J_i' (A_i (w - beta (A_i w - b_i)) - b_i) = 0, J_i = I - beta A_i or I.
Vector stationary(const Three& three, double beta, bool second_order) {
  Matrix all(2, 2);
  Vector target(2);
  for (std::size_t i = 0; i < 3; ++i) {
    Matrix J = Matrix::identity(2);
    for (std::size_t j = 0; j < 4; ++j) J.all()[j] -= beta * three.A[i].all()[j];
    const Matrix left = second_order ? J : Matrix::identity(2);
    const Matrix M = multiply(multiply(left, three.A[i]), J);
    const Vector v = multiply(multiply(left, J), three.b[i]);  // A and J commute
    for (std::size_t j = 0; j < 4; ++j) all.all()[j] += M.all()[j];
    for (std::size_t j = 0; j < 2; ++j) target[j] += v[j];
  }
  return solve(all, target);
}

// Hessian-free directions of a quadratic are exact, so w minimises mean_i f_i(w - beta grad
// f_i(w)), eq. 3 of the paper; first-order ones end elsewhere (its section 5).
TEST(PerFedAvg, FindsTheModelThatIsBestAfterOneStep) {
  const Three three;
  const double beta = 0.5;
  const Vector exact = stationary(three, beta, true), first = stationary(three, beta, false);
  for (const auto& [form, want] : {std::pair{"hessian_free", exact}, {"first_order", first}}) {
    const std::vector<double> w = central(
        {.kind = "per_fedavg", .given = {{"form", form}, {"beta", beta}}, .central_step = 0.3},
        three.problem(), 2000);
    for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(w[j], want[j], 1e-9) << form;
  }
  EXPECT_GT(std::abs(exact[0] - first[0]) + std::abs(exact[1] - first[1]), 0.01);
}

TEST(PerFedAvg, WhatIsScoredIsOneStepFromTheCommonModel) {
  const Three three;
  const Case c{.kind = "per_fedavg", .given = {{"beta", 0.5}}};
  const std::vector<double> w = central(c, three.problem()), x = solutions(three.problem(), c);
  for (std::size_t i = 0; i < 3; ++i) {
    const Vector Aw = multiply(three.A[i], w);
    for (std::size_t r = 0; r < 2; ++r)
      EXPECT_NEAR(x[2 * i + r], w[r] - 0.5 * (Aw[r] - three.b[i][r]), 1e-14);
  }
}

TEST(PerFedAvg, ItsFormsAreDifferentAndUseThirdsOfABatch) {
  expect_different({"per_fedavg", {{"beta", 0.1}}},
                   {"per_fedavg", {{"form", "hessian_free"}, {"beta", 0.1}}});
  expect_different({"per_fedavg", {{"beta", 0.1}}, 1, 3}, {"fedavg", {}, 1, 3});
}

}  // namespace
}  // namespace affpcl::identities
