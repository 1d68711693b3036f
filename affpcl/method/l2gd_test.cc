#include "affpcl/method/l2gd.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

// Both outcomes of the second round's coin, after a first round of gradient steps: seeds decide.
// Their mean, weighted by p, is a gradient step on F (Hanzely and Richtarik 2020, Lemma 2.2).
TEST(L2gd, TheMeanStepIsAGradientStepOnTheRegularisedObjective) {
  const Three three;
  const Tabular problem = three.problem();
  const double alpha = 0.05, lambda = 2, p = 0.3;
  const Case c{.kind = "l2gd",
               .given = {{"lambda", lambda}, {"p", p}},
               .step = alpha,
               .central_step = alpha};
  std::vector<double> before, learnt, averaged;
  for (std::uint64_t seed = 1; seed < 60 && (learnt.empty() || averaged.empty()); ++seed) {
    const std::vector<double> one = solutions(problem, c, 1, seed),
                              two = solutions(problem, c, 2, seed);
    if (one[0] == 0) continue;  // an averaging step from equal starts
    before = one;
    const double mean = (one[0] + one[2] + one[4]) / 3;
    const bool towards = std::abs(two[0] - (one[0] - alpha * lambda / p * (one[0] - mean))) < 1e-15;
    (towards ? averaged : learnt) = two;
  }
  ASSERT_FALSE(learnt.empty() || averaged.empty());
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t r = 0; r < 2; ++r) {
      const std::size_t at = 2 * i + r;
      const Vector Ax = multiply(three.A[i], std::span(before).subspan(2 * i, 2));
      const double mean = (before[r] + before[2 + r] + before[4 + r]) / 3,
                   gradient = Ax[r] - three.b[i][r] + lambda * (before[at] - mean);
      EXPECT_NEAR(p * averaged[at] + (1 - p) * learnt[at], before[at] - alpha * gradient, 1e-15);
    }
}

// Their Theorem 3.1: at the minimiser of F, x_i = xbar - grad f_i(x_i) / lambda. Small steps end
// near it; the coin leaves noise of the order of the step.
TEST(L2gd, EndsNearTheMinimiser) {
  const Three three;
  const double lambda = 2;
  Matrix H(6, 6);
  Vector b;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t r = 0; r < 2; ++r) {
      b.push_back(three.b[i][r]);
      for (std::size_t c = 0; c < 2; ++c) H(2 * i + r, 2 * i + c) += three.A[i](r, c);
      for (std::size_t j = 0; j < 3; ++j)
        H(2 * i + r, 2 * j + r) += lambda * ((i == j ? 1 : 0) - 1.0 / 3);
    }
  const Vector want = solve(H, b);
  const std::vector<double> x = solutions(three.problem(),
                                          {.kind = "l2gd",
                                           .given = {{"lambda", lambda}, {"p", 0.5}},
                                           .step = 1e-3,
                                           .central_step = 1e-3},
                                          20000);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(x[j], want[j], 0.1);
  EXPECT_GT(std::abs(want[0] - three.solution(0)[0]), 0.3);  // which is not the agent's own
}

}  // namespace
}  // namespace affpcl::identities
