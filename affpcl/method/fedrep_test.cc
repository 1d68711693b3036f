#include "affpcl/method/fedrep.h"

#include "affpcl/base/error.h"
#include "affpcl/method/harness_test.h"
#include "affpcl/problem/network.h"

namespace affpcl::identities {
namespace {

// g_i(x) = x - x^i_* with x^i_* = Bstar w^i_* of rank 2 in 6 dimensions: Collins et al.'s linear
// problem with infinitely many samples.
struct LowRank {
  static constexpr std::size_t n = 8, d = 6, r = 2;
  Matrix basis{r, d}, truth{n, d};  // rows: columns of Bstar, x^i_*
  LowRank() {
    basis(0, 0) = basis(0, 1) = basis(1, 2) = std::sqrt(0.5), basis(1, 4) = -std::sqrt(0.5);
    for (std::size_t i = 0; i < n; ++i) {
      const double angle = 0.8 * static_cast<double>(i);
      for (std::size_t j = 0; j < d; ++j)
        truth(i, j) = std::cos(angle) * basis(0, j) + 0.6 * std::sin(angle) * basis(1, j);
    }
  }
  Tabular problem() const {
    std::vector<Vector> b;
    for (std::size_t i = 0; i < n; ++i) b.emplace_back(truth.row(i).begin(), truth.row(i).end());
    return fixed_systems(std::vector<Matrix>(n, Matrix::identity(d)), b);
  }
};

// The principal-angle distance |(I - Bstar Bstar') B| of the models' span after `steps` rounds.
// Heads solve their problem exactly (one step of size 1), so x_i = B B'x^i_*.
double distance(const LowRank& world, double eta, std::int64_t steps) {
  const std::vector<double> x =
      solutions(world.problem(),
                {.kind = "fedrep",
                 .given = {{"rank", std::int64_t{2}}, {"head_steps", std::int64_t{1}}},
                 .step = 1,
                 .central_step = eta},
                steps);
  // An orthonormal basis of the span of all x_i: eigenvectors of sum x_i x_i'.
  const MatrixView X(x.data(), LowRank::n, LowRank::d);
  const SymmetricEigen e = symmetric_eigen(multiply(transposed(X), X));
  Matrix left(LowRank::r, LowRank::d);
  for (std::size_t c = 0; c < LowRank::r; ++c) {
    const auto b = e.vectors.row(LowRank::d - 1 - c);
    std::copy(b.begin(), b.end(), left.row(c).begin());
    for (std::size_t q = 0; q < LowRank::r; ++q) {
      const double along = dot(world.basis.row(q), b);
      for (std::size_t j = 0; j < LowRank::d; ++j) left(c, j) -= along * world.basis(q, j);
    }
  }
  return operator_norm(left);
}

// Theorem 1 of the paper in the limit of many samples: with eta <= 1 / (4 smax^2) the distance
// falls below (1 - eta E0 smin^2 / 2)^(t/2) times that of the start, E0 = 1 - dist^2 at the start,
// where s are the singular values of (w^1_*, ..., w^n_*) / sqrt(n).
TEST(FedRep, FindsTheRepresentationAtTheStatedRate) {
  const LowRank world;
  Matrix W = multiply(world.truth, transposed(world.basis));
  Matrix M = multiply(transposed(W), W);
  for (double& m : M.all()) m /= LowRank::n;
  const Vector s2 = symmetric_eigenvalues(M);  // ascending
  const double eta = 1 / (4 * s2.back());
  const double start = distance(world, eta, 1);
  ASSERT_LT(start, 1);
  ASSERT_GT(start, 0.3);
  const double rate = std::sqrt(1 - eta * (1 - start * start) * s2.front() / 2);
  for (const int t : {10, 40, 200}) {
    const double now = distance(world, eta, 1 + t);
    EXPECT_LT(now, start * std::pow(rate, t)) << t;
    if (t == 200) {
      EXPECT_LT(now, 1e-6);
    }
  }
}

TEST(FedRep, WithoutNoiseItsModelsAreTheAgentsSolutions) {
  const LowRank world;
  const std::vector<double> x = solutions(
      world.problem(),
      {.kind = "fedrep", .given = {{"rank", std::int64_t{2}}}, .step = 0.5, .central_step = 0.5},
      2000);
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], world.truth.all()[j], 1e-6);
}

TEST(FedRep, RefusesUnknownsThatAreNoWeightsOfFeatures) {
  EXPECT_THROW(solutions(Network({.agents = 3}, 1, 0), {"fedrep"}, 1), BadInput);
}

// A representation of all d columns keeps nothing from an agent: its head's steps are its own.
TEST(IdentityFedRep, FullRankWithABasisAtRestIsIndependent) {
  const Gaussian problem({.agents = 20, .dim = 4}, 3, 0);
  const std::vector<double> x = solutions(problem, {.kind = "fedrep",
                                                    .given = {{"rank", std::int64_t{4}},
                                                              {"head_steps", std::int64_t{1}}},
                                                    .central_step = 1e-300}),
                            y = solutions(problem, {"independent"});
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], y[j], 1e-12);
}

}  // namespace
}  // namespace affpcl::identities
