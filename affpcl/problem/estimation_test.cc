#include "affpcl/problem/estimation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/rows_test.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

constexpr Lanes kAll{0, 3};
std::size_t at(int i) { return static_cast<std::size_t>(i); }

Estimation::Config config(Estimation::Functionals functionals) {
  return {.agents = 3,
          .dim = 2,
          .delta_env = 0.7,
          .delta_obj = 0.4,
          .noise = 0.5,
          .functionals = functionals};
}

// Five Gauss-Hermite points per normal integrate polynomials up to degree nine exactly. Calls
// f(weight, s) with the agents' samples at these points, e among them.
template <class F>
void quadrature(const Estimation& p, F f) {
  const double root = std::sqrt(10.0), near = std::sqrt(5 - root), far = std::sqrt(5 + root);
  const double node[] = {0, near, -near, far, -far},
               weight[] = {8.0 / 15, (7 + 2 * root) / 60, (7 + 2 * root) / 60, (7 - 2 * root) / 60,
                           (7 - 2 * root) / 60};
  const In m = p.design(kAll);
  const BlockRows s(3);
  for (int code = 0; code < 125; ++code) {
    double w = 1;
    for (int r = 0, rest = code; r < 3; ++r, rest /= 5) {
      w *= weight[rest % 5];
      for (int l = 0; l < 3; ++l) s.out().row(r)[l] = node[rest % 5] + (r < 2 ? m.at(r, l) : 0);
    }
    f(w, s.out());
  }
}

// The response written out, at two numbers s.
double response(const std::vector<double>& theta, double s1, double s2) {
  const double root = std::sqrt(2.0);
  return theta[0] + theta[1] * s1 + theta[2] * s2 + theta[3] * (s1 * s1 - 1) / root +
         theta[4] * (s2 * s2 - 1) / root;
}

TEST(Estimation, ObjectivesAreFunctionalsOfTheResponse) {
  const Estimation p(config(Estimation::Functionals::kMoments), 2, 0);
  const BlockRows b(3);
  quadrature(p, [&](double, In s) {
    p.objective(kAll, s, b.out());
    for (int l = 0; l < 3; ++l) {
      const double s1 = s.row(0)[l], s2 = s.row(1)[l],
                   y = response(p.theta(l), s1, s2) + 0.5 * s.row(2)[l];
      EXPECT_NEAR(b(0, l), y, 1e-12);
      EXPECT_NEAR(b(1, l), s1 * y, 1e-12);
      EXPECT_NEAR(b(2, l), s2 * y, 1e-11);
    }
  });
}

TEST(Estimation, MeansAreIntegrals) {
  for (const auto functionals :
       {Estimation::Functionals::kMean, Estimation::Functionals::kMoments}) {
    const Estimation p(config(functionals), 2, 0);
    const int d = p.shape().d, k = p.shape().k;
    const Vector theta = {0.3, -1, 0.7, 0.2, 1.1};
    const BlockRows b(d), bhat(d), g(k), mean_b(d), mean_bhat(d), mean_g(k), want(d), want_g(k);
    Scratch scratch;
    quadrature(p, [&](double w, In s) {
      p.objective(kAll, s, b.out());
      p.Phi(kAll, s, shared(theta), scratch, bhat.out());
      p.coe(kAll, s, b.in(), shared(theta), bhat.in(), g.out());
      add_scaled(mean_b.out(), w, b.in());
      add_scaled(mean_bhat.out(), w, bhat.in());
      add_scaled(mean_g.out(), w, g.in());
    });
    for (int l = 0; l < 3; ++l) {
      p.mean_objective(kAll, want.out());
      expect_near(want.lane(l), mean_b.lane(l), 1e-12);
      p.mean_Phi(kAll, shared(theta), want.out());
      expect_near(want.lane(l), mean_bhat.lane(l), 1e-12);
      p.mean_coe(kAll, shared(theta), want_g.out());
      expect_near(want_g.lane(l), mean_g.lane(l), 1e-12);
      // A = I: the solution is the mean of b.
      const In x = p.truth()->x.block(0)[Field{0, d}];
      for (int r = 0; r < d; ++r) EXPECT_NEAR(x.at(r, l), mean_b(r, l), 1e-12);
    }
  }
}

TEST(Estimation, StepRulesHaveTheirBounds) {
  const Estimation p(config(Estimation::Functionals::kMoments), 2, 0);
  const int k = p.shape().k;
  Matrix M[3] = {Matrix(at(k), at(k)), Matrix(at(k), at(k)), Matrix(at(k), at(k))};
  quadrature(p, [&](double w, In s) {  // of degree eight
    for (int l = 0; l < 3; ++l) {
      const double s1 = s.row(0)[l], s2 = s.row(1)[l], root = std::sqrt(2.0);
      const Vector h = {1, s1, s2, (s1 * s1 - 1) / root, (s2 * s2 - 1) / root};
      M[l] += w * squared_norm(h) * outer(h, h);
    }
  });
  double largest = 0;
  for (const Matrix& m : M) largest = std::max(largest, symmetric_eigenvalues(m).back());
  EXPECT_NEAR(p.G_Phi(), std::sqrt(largest), 1e-10);
  EXPECT_EQ(p.G_A(), 1);
}

// Sampling noise is pooled, a response's own error is not: with exact ratios agents that differ
// little gain much, until the error dominates.
TEST(Estimation, SamplingNoiseIsPooled) {
  const StudyResult result = run_study(read_study(R"(
[problem]
kind = "estimation"
agents = 10
delta_env = 0.1
delta_obj = 0.1
[run]
steps = 800
step_size = 0.02
replicates = 8
tail = 200
[[method]]
kind = "affpcl"
objective = "moments"
[[method]]
kind = "independent"
[sweep]
"problem.noise" = [0.0, 2.0]
)",
                                                  "test"),
                                       {});
  EXPECT_LT(result.settings.at(0).methods.at(0).vs_independent.mean, 0.3);
  EXPECT_GT(result.settings.at(1).methods.at(0).vs_independent.mean, 0.6);
}

}  // namespace
}  // namespace affpcl
