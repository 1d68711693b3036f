// (theta^c, x^c, x^1 .. x^n, 1) follows a linear recursion z' = T(s) z whose matrix is drawn anew
// from finitely many. So E zz' follows M' = sum_s P(s) T(s) M T(s)', and the mean squared errors of
// every step can be computed, not sampled.
#include <gtest/gtest.h>

#include "affpcl/math/statistics.h"
#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

class Recursion {
 public:
  Recursion(const FiniteSystem& sys, const Plan& plan)
      : e_(sys), own_(plan.config.central == AffPcl::Central::kOwn), step_(plan.steps()) {
    z_ = stack({sys.thetac0, sys.xc0, sys.x0, {1}});
    M_ = outer(z_, z_);
    each_joint_state(e_, 1, [&](const std::vector<int>& states, double p) {
      directions_.emplace_back(p, direction(states));
    });
  }

  Vector after_one(const std::vector<int>& states) const {
    return z_ - times(steps(0), direction(states) * z_);
  }
  void advance() {
    Matrix next(M_.rows(), M_.cols());
    const Vector alpha = steps(time_++);
    for (const auto& [p, g] : directions_) {
      Matrix T = Matrix::identity(g.rows());
      for (std::size_t r = 0; r < T.rows(); ++r)
        for (std::size_t c = 0; c < T.cols(); ++c) T(r, c) -= alpha[r] * g(r, c);
      next += p * multiply(T * M_, transposed(T));
    }
    M_ = next;
  }
  double mse_theta() const { return mse(0, e_.thetac); }
  double mse_xc() const { return mse(e_.k, e_.xc); }
  double mse_x(int i) const { return mse(e_.k + e_.d * (i + 1), e_.x[at(i)]); }

 private:
  // The step size of every row of z.
  Vector steps(int t) const {
    const auto all = [](int count, double step) { return Vector(at(count), step); };
    return stack({all(e_.k, step_.objective.at(t)),
                  all(e_.d, step_.central.at(t)),
                  all(e_.n * e_.d, step_.agent.at(t)),
                  {0}});
  }
  // eq:obj-alg, eq:fl or CDL-2, eq:ker-het-pcl-alg at these states: all directions are this times
  // z.
  Matrix direction(const std::vector<int>& states) const {
    const std::size_t d = at(e_.d), k = at(e_.k), one = z_.size() - 1;
    const double share = 1.0 / e_.n;
    Matrix g(z_.size(), z_.size());
    for (int j = 0; j < e_.n; ++j) {
      const Matrix &A = e_.A[at(states[at(j)])], &Phi = e_.Phi[at(states[at(j)])];
      const Matrix b = MatrixView(e_.b[at(j)][at(states[at(j)])].data(), d, 1);
      add_block(g, 0, 0, share, Phi);
      add_block(g, 0, one, -share, b);
      add_block(g, k, k, share, A);
      if (own_) add_block(g, k, one, -share, b);
      if (!own_) add_block(g, k, 0, -share, Phi);
      for (int i = 0; i < e_.n; ++i) {
        const std::size_t row = k + d + at(i) * d;
        const double w = e_.rho(i, states[at(j)]) * share - (i == j ? 1 : 0);  // of g^{c->j}
        add_block(g, row, k, w, A);
        add_block(g, row, 0, -w, Phi);
        if (i != j) continue;
        add_block(g, row, row, 1, A);
        add_block(g, row, one, -1, b);
      }
    }
    return g;
  }
  // E|y - y_*|^2 of the part y of z that starts at `row`.
  double mse(int row, const Vector& star) const {
    double error = squared_norm(star);
    for (std::size_t r = 0; r < star.size(); ++r)
      error += M_(at(row) + r, at(row) + r) - 2 * star[r] * M_(at(row) + r, M_.cols() - 1);
    return error;
  }
  Exact e_;
  bool own_;
  StepSizes step_;
  int time_ = 0;
  Vector z_;
  Matrix M_;
  std::vector<std::pair<double, Matrix>> directions_;
};

Vector stacked(const Iterates& now) {
  Vector z = stack({now.thetac, now.xc});
  for (const Vector& x : now.x) append(z, x);
  return stack({z, {1}});
}

// CDL-1, CDL-2, and steps that shrink.
std::vector<Plan> recursions() {
  const Plan own{.agent = 0.2, .central = 0.1, .objective = 0.3};
  Plan estimated = own, diminishing = own;
  estimated.config.central = AffPcl::Central::kEstimated;
  diminishing.t0 = 2;
  return {own, estimated, diminishing};
}

TEST(TheoryRecursion, OneStepIsTheLinearMap) {
  Dice dice(50);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  for (const Plan& plan : recursions()) {
    const Recursion recursion(sys, plan);
    each_joint_state(Exact(sys), 1, [&](const std::vector<int>& states, double) {
      EXPECT_LT(
          distance(stacked(Game(sys, states, plan.affpcl()).end()), recursion.after_one(states)),
          1e-12);
    });
  }
}

// The mean over all sequences of two joint states, each played through the engine.
TEST(TheoryRecursion, TwoStepsByEnumeration) {
  Dice dice(51);
  for (const Wild& shape : {Wild{.agents = 2, .states = 3, .d = 2, .k = 2},
                            Wild{.agents = 2, .states = 4, .d = 1, .k = 1},
                            Wild{.agents = 3, .states = 2, .d = 2, .k = 2}})
    for (const Plan& plan : recursions()) {
      const FiniteSystem sys = wild_system(dice, shape);
      const Exact e(sys);
      std::vector<double> x(at(e.n), 0.0);
      double xc = 0, theta = 0;
      each_joint_state(e, 2, [&](const std::vector<int>& states, double p) {
        const Iterates end = Game(sys, states, plan.affpcl()).end();
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += p * squared_norm(end.x[i] - e.x[i]);
        xc += p * squared_norm(end.xc - e.xc);
        theta += p * squared_norm(end.thetac - e.thetac);
      });
      Recursion recursion(sys, plan);
      recursion.advance(), recursion.advance();
      for (int i = 0; i < e.n; ++i) EXPECT_NEAR(x[at(i)], recursion.mse_x(i), 1e-12);
      EXPECT_NEAR(xc, recursion.mse_xc(), 1e-12);
      EXPECT_NEAR(theta, recursion.mse_theta(), 1e-12);
    }
}

// lem:step, computed: with alpha_t = 4 / (lambda (t + t0 + 1)) all three errors fall as 1/t.
TEST(TheoryRecursion, DiminishingStepsGiveOneOverT) {
  Dice dice(53);
  for (const auto central : {AffPcl::Central::kOwn, AffPcl::Central::kEstimated}) {
    const FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 2, .d = 1, .k = 1});
    const Exact e(sys);
    const double lambda = std::min(smallest_symmetric(e.Abar[0]), smallest_symmetric(e.Abar[1]));
    Recursion recursion(sys, {.config = {.central = central},
                              .agent = 1 / lambda,
                              .central = 1 / smallest_symmetric(e.A0),
                              .objective = 1 / smallest_symmetric(e.Phi0),
                              .t0 = 10});
    const auto errors = [&] {
      return std::array{recursion.mse_x(0), recursion.mse_x(1), recursion.mse_xc(),
                        recursion.mse_theta()};
    };
    const int first = 1000, last = 8000;
    std::array<double, 4> before{};
    for (int t = 1; t <= last; ++t) {
      recursion.advance();
      if (t == first) before = errors();
    }
    const auto after = errors();
    for (std::size_t k = 0; k < after.size(); ++k) {
      const double slope = std::log(after[k] / before[k]) / std::log(double{last} / first);
      EXPECT_GT(slope, -1.08);
      EXPECT_LT(slope, -0.95);
    }
  }
}

// Independent draws agree with the recursion. 3 x 11 checks at |z| < 4.5: a correct program with
// other seeds fails with probability below 3e-4 (7e-6 a check).
TEST(StatisticsRecursion, MonteCarloAgrees) {
  Dice dice(52);
  const int steps = 40, replicates = 8000;
  for (const Plan& plan : recursions()) {
    SCOPED_TRACE(name_of(plan));
    const FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3});
    const Tabular problem(sys, Tabular::Coe::kAuto);
    std::vector<std::vector<double>> x[2];  // [agent][step][replicate]
    for (auto& curves : x) curves.resize(steps);
    std::vector<double> xc, theta, mse;
    for (std::uint32_t r = 0; r < replicates; ++r) {
      RunOptions options;
      options.seed = 77, options.replicate = r, options.steps = steps, options.tail = 1;
      options.curve_agents = {0, 1};
      const Record record = records(problem, options, plan.affpcl())[0];
      for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t t = 0; t < steps; ++t) x[i][t].push_back(record.agents[i][t]);
      xc.push_back(record.central_x), theta.push_back(record.central_theta);
      mse.push_back(record.mse);
    }
    const auto check = [](const std::vector<double>& sampled, double computed, const char* what) {
      const double m = mean(sampled);
      double square = 0;
      for (double v : sampled) square += (v - m) * (v - m);
      const auto n = static_cast<double>(sampled.size());
      EXPECT_LT(std::abs(m - computed) / std::sqrt(square / (n - 1) / n), 4.5)
          << what << ": " << m << " against " << computed;
    };
    Recursion recursion(sys, plan);
    for (int t = 1; t <= steps; ++t) {
      recursion.advance();
      if (t == 1 || t == 3 || t == 10 || t == steps)
        for (int i = 0; i < 2; ++i) check(x[i][at(t - 1)], recursion.mse_x(i), "x^i");
    }
    check(xc, recursion.mse_xc(), "x^c");
    check(theta, recursion.mse_theta(), "theta^c");
    check(mse, (recursion.mse_x(0) + recursion.mse_x(1)) / 2, "mean over agents");
  }
}

}  // namespace
}  // namespace affpcl::testing
