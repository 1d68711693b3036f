#include "affpcl/method/all_for_one.h"

#include "affpcl/base/error.h"
#include "affpcl/method/all_for_all.h"
#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

std::map<std::string, Value> given(double width, std::int64_t rank = 100) {
  return {{"width", width}, {"rank", rank}};
}

TEST(IdentityAllFor, TheEndsOfTheWidthAreFedAvgAndIndependent) {
  for (const char* kind : {"all_for_one", "all_for_all"})
    for (int period : {1, 5}) {
      expect_same({kind, given(1e8), period}, {"fedavg", {}, period});
      expect_same({kind, given(1e-8), period}, {"independent"});
      expect_different({kind, given(0.05), period}, {"independent"});
      expect_different({kind, given(0.05, 3), period}, {kind, given(0.05), period});
    }
}

double near(const Three& three, std::size_t i, std::size_t j, double width) {
  const Vector a = three.solution(i), b = three.solution(j);
  double square = 0;
  for (std::size_t r = 0; r < 2; ++r) square += (a[r] - b[r]) * (a[r] - b[r]);
  return std::exp(-square / (2 * width * width));
}

// Without noise agent i ends where its weighted mean direction is 0, sum_j lambda_ij (A_j x - b_j):
// the bias that the paper's bound (its Theorem 3) trades for variance.
TEST(AllForOne, EndsAtTheWeightedSystemsSolution) {
  const Three three;
  const double width = 1.5;
  const std::vector<double> x = solutions(
      three.problem(), {.kind = "all_for_one", .given = given(width), .central_step = 0.5}, 2000);
  for (std::size_t i = 0; i < 3; ++i) {
    Matrix A(2, 2);
    Vector b(2);
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t e = 0; e < 4; ++e)
        A.all()[e] += near(three, i, j, width) * three.A[j].all()[e];
      for (std::size_t r = 0; r < 2; ++r) b[r] += near(three, i, j, width) * three.b[j][r];
    }
    const Vector want = solve(A, b);
    for (std::size_t r = 0; r < 2; ++r) EXPECT_NEAR(x[2 * i + r], want[r], 1e-9);
    EXPECT_GT(std::abs(want[0] - three.solution(i)[0]), 0.01);
  }
}

// All-for-all is gradient descent in y on sum_i f_i((Lambda y)_i), x = Lambda y: at the end
// Lambda'(A x - b) = 0 (their section 4). W = Lambda Lambda' has the same null space.
TEST(AllForAll, DescendsTheCompositeObjective) {
  const Three three;
  const double width = 1.5;
  Matrix W(3, 3), xi(3, 3);
  Vector weight(3);
  for (std::size_t i = 0; i < 3; ++i) {
    double total = 0;
    for (std::size_t e = 0; e < 3; ++e) total += near(three, i, e, width);
    for (std::size_t e = 0; e < 3; ++e) weight[e] += xi(i, e) = near(three, i, e, width) / total;
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t e = 0; e < 3; ++e) W(i, j) += xi(i, e) * xi(j, e) / weight[e];
  Vector x(6);  // the recursion itself, from the matrix W
  for (int t = 0; t < 50; ++t) {
    Vector g(6);
    for (std::size_t i = 0; i < 3; ++i) {
      const Vector Ax = multiply(three.A[i], std::span<const double>(x).subspan(2 * i, 2));
      for (std::size_t r = 0; r < 2; ++r) g[2 * i + r] = Ax[r] - three.b[i][r];
    }
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t r = 0; r < 2; ++r) x[2 * i + r] -= 0.2 * W(i, j) * g[2 * j + r];
  }
  const std::vector<double> got =
      solutions(three.problem(), {.kind = "all_for_all", .given = given(width), .step = 0.2}, 50);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(got[j], x[j], 1e-12);
  for (const double eigenvalue : symmetric_eigenvalues(W)) EXPECT_GT(eigenvalue, -1e-12);
}

}  // namespace
}  // namespace affpcl::identities
