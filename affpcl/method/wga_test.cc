#include "affpcl/method/wga.h"

#include "affpcl/base/error.h"
#include "affpcl/method/harness_test.h"
#include "affpcl/problem/glm.h"

namespace affpcl::identities {
namespace {

std::map<std::string, Value> given(double weight, double beta) {
  return {{"weight", weight}, {"beta", beta}};
}

TEST(IdentityWga, TheEndsOfTheWeightAreIndependentAndFedAvg) {
  expect_same({"wga", given(0, 0)}, {"independent"});
  expect_same({"wga", given(0, 0.1), 5}, {"independent"});
  expect_same({"wga", given(1, 0)}, {"fedavg"});
  expect_different({"wga"}, {"wga", given(0.5, 0)});
}

// Without noise: a biased end without the correction, the agent's own solution with it (Chayti et
// al. 2022, sections 4 and 5).
TEST(Wga, TheCorrectionRemovesTheBias) {
  const Three three;
  const double a = 0.6;
  const std::vector<double> plain =
                                solutions(three.problem(),
                                          {.kind = "wga", .given = given(a, 0), .step = 0.3}, 2000),
                            corrected = solutions(
                                three.problem(),
                                {.kind = "wga", .given = given(a, 0.1), .step = 0.3}, 4000);
  for (std::size_t i = 0; i < 3; ++i) {
    Matrix A(2, 2);
    Vector b(2);
    for (std::size_t j = 0; j < 3; ++j) {
      const double weight = a / 3 + (i == j ? 1 - a : 0);
      for (std::size_t e = 0; e < 4; ++e) A.all()[e] += weight * three.A[j].all()[e];
      for (std::size_t r = 0; r < 2; ++r) b[r] += weight * three.b[j][r];
    }
    const Vector biased = solve(A, b), own = three.solution(i);
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_NEAR(plain[2 * i + r], biased[r], 1e-9);
      EXPECT_NEAR(corrected[2 * i + r], own[r], 1e-9);
    }
    EXPECT_GT(std::abs(biased[0] - own[0]) + std::abs(biased[1] - own[1]), 0.05);
  }
}

TEST(Wga, RefusesDirectionsThatAreNotLinear) {
  const Logistic problem({.agents = 3}, 1, 0);
  EXPECT_THROW(solutions(problem, {"wga"}, 1), BadInput);
}

}  // namespace
}  // namespace affpcl::identities
