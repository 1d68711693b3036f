#include "affpcl/method/apfl.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

std::map<std::string, Value> fixed(double mix) { return {{"mix", mix}, {"adaptive", false}}; }

TEST(IdentityApfl, TheEndsOfTheMixtureAreFedAvgAndIndependent) {
  for (int period : {1, 5}) {
    expect_same({"apfl", fixed(0), period}, {"fedavg", {}, period});
    expect_same({"apfl", fixed(1), period}, {"independent"});
    expect_different({"apfl", fixed(0.5), period}, {"independent"});
  }
}

// The mixed model has the agent's own gradient, so without noise it ends at the agent's own
// solution, whatever the fixed weight above 0.
TEST(Apfl, WithoutNoiseEveryAgentReachesItsOwnSolution) {
  const Three three;
  const std::vector<double> x =
      solutions(three.problem(),
                {.kind = "apfl", .given = fixed(0.3), .step = 0.5, .central_step = 0.1}, 4000);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t r = 0; r < 2; ++r) EXPECT_NEAR(x[2 * i + r], three.solution(i)[r], 1e-9);
}

// Two rounds by hand, d = 1: g_i(x) = a_i x - b_i.
TEST(Apfl, MovesItsWeightAlongTheGradient) {
  std::vector<Matrix> A(2, Matrix(1, 1));
  A[0](0, 0) = 1, A[1](0, 0) = 2;
  const std::vector<Vector> b = {{1}, {-1}};
  const double alpha = 0.1, central = 0.2;
  double w = 0, v[2] = {}, mix[2] = {0.5, 0.5}, x[2] = {};
  for (int round = 0; round < 2; ++round) {
    double moved = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto g = [&](double at) { return A[i](0, 0) * at - b[i][0]; };
      moved -= central * g(w) / 2;
      const double gx = g(w + mix[i] * (v[i] - w)), gap = v[i] - w;
      v[i] -= alpha * mix[i] * gx;
      mix[i] -= alpha * gap * gx;
    }
    w += moved;
    for (std::size_t i = 0; i < 2; ++i) x[i] = mix[i] * v[i] + (1 - mix[i]) * w;
  }
  const std::vector<double> got =
      solutions(fixed_systems(A, b), {.kind = "apfl", .step = alpha, .central_step = central}, 2);
  EXPECT_NE(mix[0], 0.5);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], x[i], 1e-14);
}

}  // namespace
}  // namespace affpcl::identities
