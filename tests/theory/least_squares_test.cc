// What the choice of Phi decides in least squares: unbiased always, a gain with channels, nothing
// with Phi = A, a loss with Phi = I.
#include "affpcl/problem/least_squares.h"

#include <gtest/gtest.h>

#include "affpcl/math/statistics.h"
#include "affpcl/problem/apply_test.h"
#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

using Form = LeastSquares::Form;
constexpr Form kForms[] = {Form::kChannels, Form::kIdentity, Form::kFeatures};

// h = rg^i - g^{c->i} has mean 0 at any x^c and theta^c if the ratio is right. 18 numbers for each
// of three forms, |z| < 4.5: a false alarm in 4e-4 of seeds. With rho = 1 in its place some |z| is
// far above, so the test would notice (Phi = A with x^c = theta^c aside, where g is 0).
TEST(TheoryLeastSquares, CorrectionHasMeanZero) {
  const int n = 6, d = 3, k = 2, draws = 20000;
  for (Form form : kForms) {
    const LeastSquares problem({.agents = n, .dim = d, .channels = k, .Phi = form}, 8, 0);
    const Densities& densities = *problem.densities();
    const Lanes lanes{0, n};
    Dice dice(4);
    const Vector xc = dice.vector(d), thetac = dice.vector(problem.shape().k);
    Matrix sum(d, n), square = sum, plain_sum = sum, plain_square = sum;
    Scratch scratch;
    for (std::uint32_t t = 0; t < draws; ++t) {
      scratch.clear();
      const Out s = scratch.rows(d + k + 1), g = scratch.rows(d), bhat = scratch.rows(d),
                rg = scratch.rows(d);
      problem.draw({{5, 0, t}, {}}, {lanes, nullptr}, s);
      apply(problem, lanes, s, {xc.data(), d, 1}, g);
      apply_Phi(problem, lanes, s, {thetac.data(), problem.shape().k, 1}, bhat);
      add_scaled(g, -1, bhat);
      std::vector<double> M(at(densities.p() * d));
      densities.accumulate(lanes, s, g, scratch, M.data());
      for (double& x : M) x /= n;
      densities.correct(lanes, M.data(), rg);
      for (int r = 0; r < d; ++r) {
        double mean = 0;
        for (int i = 0; i < n; ++i) mean += g.row(r)[i] / n;
        for (int i = 0; i < n; ++i) {
          const double h = rg.row(r)[i] - g.row(r)[i], plain = mean - g.row(r)[i];
          sum(at(r), at(i)) += h, square(at(r), at(i)) += h * h;
          plain_sum(at(r), at(i)) += plain, plain_square(at(r), at(i)) += plain * plain;
        }
      }
    }
    const auto z = [draws](const Matrix& sums, const Matrix& squares) {
      double most = 0;
      for (std::size_t j = 0; j < sums.all().size(); ++j) {
        const double total = sums.all()[j], spread = squares.all()[j] - total * total / draws;
        most = std::max(most, std::abs(total) / std::sqrt(spread));
      }
      return most;
    };
    EXPECT_LT(z(sum, square), 4.5) << static_cast<int>(form);
    EXPECT_GT(z(plain_sum, plain_square), 20) << static_cast<int>(form);
  }
}

// Phi = A: x^c and theta^c take the same steps, so A x^c - Phi theta^c is 0 and nothing is
// corrected, whatever the heterogeneity and the noise.
TEST(IdentityLeastSquares, WithPhiEqualToAAffPclIsIndependentLearning) {
  for (int period : {1, 3}) {
    const LeastSquares problem(
        {.agents = 70, .delta_env = 0.5, .label_noise = 0.3, .Phi = Form::kFeatures}, 3, 0);
    const Plan plan{.period = period, .agent = 0.01, .central = 0.02, .objective = 0.02};
    RunOptions options;
    options.steps = 60;
    std::vector<RunMethod> methods;
    methods.push_back(plan.affpcl()), methods.push_back(plan.independent());
    const auto team = serial_team();
    affpcl::Run run(problem, std::move(methods), options, *team);
    run.advance(options.steps);
    const Iterates together = iterates(run, 0, 70), alone = iterates(run, 1, 70);
    EXPECT_LE(distance(together.x, alone.x), 1e-12);
    EXPECT_LE(distance(together.xc, together.thetac), 1e-12);
    EXPECT_GT(norm(together.xc), 0.1);
  }
  // The same with channels is something else.
  const LeastSquares other({.agents = 70, .delta_env = 0.5}, 3, 0);
  const Plan plan{.agent = 0.01, .central = 0.02, .objective = 0.02};
  RunOptions options;
  const std::vector<Record> both = records(other, options, plan.affpcl(), plan.independent());
  EXPECT_GT(std::abs(both[0].mse - both[1].mse), 1e-3 * both[1].mse);
}

// Error against learning alone, paired, over replicates.
Estimate against_alone(LeastSquares::Config config, std::uint32_t replicates) {
  std::vector<double> affpcl, alone;
  for (std::uint32_t r = 0; r < replicates; ++r) {
    const LeastSquares problem(config, 1, r);
    const Plan plan{.agent = 0.01, .central = 0.01, .objective = 0.01};
    RunOptions options;
    options.replicate = r, options.steps = 1000, options.tail = 500;
    const std::vector<Record> both = records(problem, options, plan.affpcl(), plan.independent());
    EXPECT_LT(both[0].diverged_at, 0);
    affpcl.push_back(both[0].mse), alone.push_back(both[1].mse);
  }
  return ratio_of_means(affpcl, alone);
}

// Error over error alone, 80 replicates of 20 agents: found .052, .471, .299, 2.46 and 2.83 with
// standard errors .002, .014, .006, .09 and .11. All bounds are five of them away or more: a false
// alarm in 2e-6 of seeds.
TEST(StatisticsLeastSquares, PhiDecidesWhoGains) {
  const auto ratio = [](Form form, double delta, double label_noise = 0) {
    return against_alone(
               {.delta_env = delta, .delta_obj = delta, .label_noise = label_noise, .Phi = form},
               80)
        .mean;
  };
  EXPECT_LT(ratio(Form::kChannels, 0), 0.065);
  EXPECT_LT(ratio(Form::kChannels, 0.3), 0.55);
  EXPECT_GT(ratio(Form::kChannels, 0, 0.5), 0.26);  // an agent's own noise is not pooled
  for (double delta : {0.0, 0.3}) {
    const double identity = ratio(Form::kIdentity, delta);
    EXPECT_GT(identity, 2);
    EXPECT_LT(identity, 4);
  }
}

}  // namespace
}  // namespace affpcl::testing
