#include "affpcl/method/fedem.h"

#include "affpcl/method/harness_test.h"

namespace affpcl::identities {
namespace {

TEST(IdentityFedEm, OneComponentIsFedAvg) {
  const std::map<std::string, Value> one = {{"components", std::int64_t{1}}, {"start_scale", 0.0}};
  for (int period : {1, 5}) expect_same({"fedem", one, period}, {"fedavg", {}, period});
  expect_different({"fedem"}, {"fedavg"});
}

// Agents with one point each, g_i(x) = x - y_i: then the loss is the paper's, |x - y_i|^2 / 2.
struct Points {
  static constexpr std::int64_t n = 6;
  std::vector<double> y = {2.0, 2.3, 1.8, -1.0, -1.2, 0.4};
  Tabular problem() const {
    std::vector<Vector> b;
    for (double point : y) b.push_back({point});
    return fixed_systems(std::vector<Matrix>(n, Matrix::identity(1)), b);
  }
};

// The method's memory after so many rounds: pi (n x 2) and theta (2).
struct Mixture {
  std::vector<double> pi, theta;
  double log_likelihood(const Points& points, double temperature) const {
    double sum = 0;
    for (std::size_t i = 0; i < Points::n; ++i) {
      double p = 0;
      for (std::size_t m = 0; m < 2; ++m) {
        const double off = theta[m] - points.y[i];
        p += pi[i * 2 + m] * std::exp(-off * off / (2 * temperature));
      }
      sum += std::log(p);
    }
    return sum;
  }
};

Mixture after(const Tabular& problem, const Case& c, std::int64_t steps) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = 1000;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(steps);
  Mixture out;
  for (const RunState::Field& f : run.save().fields) {
    if (f.name == "fedem.centre") out.theta = f.numbers;
    if (f.name == "fedem.agents")  // rows x, pi_1, pi_2, q_1, q_2 of one block
      for (std::size_t i = 0; i < Points::n; ++i)
        for (std::size_t m = 0; m < 2; ++m) out.pi.push_back(f.numbers[(1 + m) * kLanes + i]);
  }
  return out;
}

// The paper's Proposition 3.1 and Algorithm 1 are generalised EM: no round makes the data less
// likely. All of an agent's data is its point, so pi is the round's q (memory = 1).
TEST(FedEm, NoRoundLowersTheLikelihood) {
  const Points points;
  const Tabular problem = points.problem();
  const double temperature = 0.5;
  const Case c{.kind = "fedem",
               .given = {{"components", std::int64_t{2}},
                         {"memory", 1.0},
                         {"temperature", temperature},
                         {"start_scale", 0.5}},
               .central_step = 0.5};
  double last = -1e300;
  for (const std::int64_t steps : {1, 2, 3, 5, 8, 13, 21, 34, 100}) {
    const double now = after(problem, c, steps).log_likelihood(points, temperature);
    EXPECT_GE(now, last - 1e-12) << steps;
    last = now;
  }
  // At the end theta_m is the mean of the points, weighted by their q, which is pi.
  const Mixture end = after(problem, c, 1000);
  for (std::size_t m = 0; m < 2; ++m) {
    double sum = 0, weight = 0;
    for (std::size_t i = 0; i < Points::n; ++i)
      sum += end.pi[i * 2 + m] * points.y[i], weight += end.pi[i * 2 + m];
    EXPECT_NEAR(end.theta[m], sum / weight, 1e-6);
  }
  EXPECT_GT(std::abs(end.theta[0] - end.theta[1]), 1);
}

}  // namespace
}  // namespace affpcl::identities
