#include "affpcl/problem/glm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "affpcl/base/error.h"
#include "affpcl/study/study.h"

namespace affpcl {
namespace {

// E f(phi, xi) under an agent's own environment, d = 1, by the trapezoidal rule.
template <class F>
double mean_of(const Logistic& problem, int agent, F f) {
  double sum = 0;
  const double h = 1.0 / 8, m = problem.mean({0, 3}).at(0, agent);
  for (double z = -9; z <= 9; z += h)
    for (double xi = -9; xi <= 9; xi += h)
      sum += h * h * std::exp(-(z * z + xi * xi) / 2) / (2 * std::numbers::pi) * f(m + z, xi);
  return sum;
}

// The solutions of agents and of the centre are where the mean directions are 0, through
// direction() itself, and theta^c_* is where the mean of coe() is.
TEST(Logistic, TheTruthHasNoMeanDirection) {
  const Logistic problem(
      {.agents = 3, .dim = 1, .delta_env = 0.3, .delta_obj = 0.7, .drawn = false}, 5, 0);
  const Truth& truth = *problem.truth();
  const Lanes lanes{0, 3};
  Scratch scratch;
  const Buffer state(3 * kLanes), one(kLanes), b(kLanes), three(3 * kLanes);
  const In s{state.data(), 3};
  double central = 0, theta[3] = {};
  for (int i = 0; i < 3; ++i) {
    const double x = truth.x.block(0)[Field{0, 1}].p[i], w = problem.weights(i)[0];
    const auto g = [&](double phi, double xi, double at) {
      std::fill_n(state.data(), kLanes, phi);
      std::fill_n(state.data() + kLanes, kLanes, xi);
      std::fill_n(state.data() + 2 * kLanes, kLanes, 1 / (1 + std::exp(-w * phi - xi)));
      problem.objective(lanes, s, {b.data(), 1});
      problem.direction(lanes, s, {b.data(), 1}, {&at, 1, 1}, scratch, {one.data(), 1});
      return one.data()[i];
    };
    const auto mean_g = [&](double at) {
      return mean_of(problem, i, [&](double phi, double xi) { return g(phi, xi, at); });
    };
    EXPECT_NEAR(mean_g(x), 0, 1e-12);
    EXPECT_GT(mean_g(x + 0.1), 0.01);
    EXPECT_GT(std::abs(x - w), 0.01);  // x cannot explain xi, and shrinks
    central += mean_g(truth.xc[0]);
    for (int r = 0; r < 3; ++r)
      theta[r] += mean_of(problem, i, [&](double phi, double xi) {
        g(phi, xi, 0);
        problem.coe(lanes, s, {}, {truth.thetac.data(), 3, 1}, {}, {three.data(), 3});
        return three.data()[r * kLanes + i];
      });
  }
  EXPECT_NEAR(central, 0, 1e-12);
  for (const double mean : theta) EXPECT_NEAR(mean, 0, 1e-12);
}

// Binary labels have the stated probability: 20,000 draws, 4.5 standard deviations.
TEST(Logistic, LabelsHaveTheirProbability) {
  const Logistic problem({.agents = 64, .dim = 2}, 2, 0);
  const Lanes lanes{0, 64};
  const Buffer state(4 * kLanes);
  double gap = 0, variance = 0;
  for (std::uint32_t t = 0; t < 320; ++t) {
    problem.draw({{1, 0, t}, {}}, {lanes, nullptr}, {state.data(), 4});
    for (int i = 0; i < 64; ++i) {
      const auto row = [&](int r) { return state.data()[r * kLanes + i]; };
      const std::span<const double> w = problem.weights(i);
      const double u = w[0] * row(0) + w[1] * row(1) + row(2), p = 1 / (1 + std::exp(-u)),
                   y = row(3);
      EXPECT_TRUE(y == 0 || y == 1);
      gap += y - p, variance += p * (1 - p);
    }
  }
  EXPECT_LT(std::abs(gap), 4.5 * std::sqrt(variance));
}

struct World {
  const char *kind, *labels;
  double delta, step = 0.05;
};

double gain(const World& world) {
  const StudyResult result =
      run_study(read_study(std::string("[problem]\nkind = \"") + world.kind +
                               "\"\nagents = 20\ndelta_env = 0.0\ndelta_obj = " +
                               std::to_string(world.delta) + "\nlabels = \"" + world.labels +
                               "\"\n[run]\nstep_size = " + std::to_string(world.step) + R"(
steps = 3000
replicates = 4
tail = 1000
[[method]]
kind = "affpcl"
ratio = "none"
objective = "known"
[[method]]
kind = "independent"
)",
                           "test"),
                {});
  return result.settings.at(0).methods[0].vs_independent.mean;
}

// With one environment rho = 1, and 20 equal agents gain by 20. What collaboration cannot average
// is the noise of an agent's own labels. Fixed seed; the bounds are loose.
TEST(Logistic, CollaborationHelpsAsFarAsNoiseIsShared) {
  const double equal = gain({"logistic", "probability", 0}),
               near = gain({"logistic", "probability", 0.3}),
               far = gain({"logistic", "probability", 1}),
               binary = gain({"logistic", "binary", 0.3});
  EXPECT_NEAR(equal, 0.05, 0.02);
  EXPECT_LT(equal, near);
  EXPECT_LT(near, 0.15);
  EXPECT_LT(near, far);
  EXPECT_LT(far, 0.5);
  EXPECT_GT(binary, 0.6);
  EXPECT_LT(binary, 0.95);
}

TEST(Glm, SoItIsForClassesAndCounts) {
  for (const World& w : {World{"softmax", "probability", 0}, {"poisson", "rate", 0, 0.02}})
    EXPECT_NEAR(gain(w), 0.05, 0.03) << w.kind;
  for (const World& w : {World{"softmax", "class", 0}, {"poisson", "count", 0, 0.02}}) {
    EXPECT_GT(gain(w), 0.3) << w.kind;
    EXPECT_LT(gain(w), 1) << w.kind;
  }
}

// E exp(x'phi) phi = (m + x) exp(m'x + |x|^2 / 2) for phi ~ N(m, I), and its derivative.
TEST(LinkMoments, OfAnExponentialHaveAClosedForm) {
  const Vector m = {0.4, -1.1, 0.3};
  Matrix x(1, 3);
  x.all() = {0.5, 0.2, -0.7};
  const LinkMoments e = link_moments(Link::kPoisson, m, x, true);
  const double mean = std::exp(dot(m, x.all()) + squared_norm(x.all()) / 2);
  EXPECT_NEAR(e.mean[0], mean, 1e-12 * mean);
  for (std::size_t a = 0; a < 3; ++a) {
    EXPECT_NEAR(e.with_phi(0, a), mean * (m[a] + x(0, a)), 1e-12);
    for (std::size_t b = 0; b < 3; ++b)
      EXPECT_NEAR(e.curvature(a, b),
                  mean * ((a == b ? 1 : 0) + (m[a] + x(0, a)) * (m[b] + x(0, b))), 1e-11);
  }
}

// Two outputs on two features, against the plain double integral over phi; the curvature against
// differences. Also with one row a multiple of the other, where the basis has one vector.
TEST(LinkMoments, OfClassesAgreeWithTheIntegralOverFeatures) {
  const Vector m = {0.4, -1.1};
  for (const double second : {0.9, -1.2}) {
    Matrix X(2, 2);
    X.all() = {0.8, -0.5, second, second == 0.9 ? 0.3 : 0.75};
    const auto integral = [&](MatrixView at) {
      Matrix sum(2, 2);
      const double h = 1.0 / 8;
      for (double a = -9; a <= 9; a += h)
        for (double b = -9; b <= 9; b += h) {
          const Vector phi = {m[0] + a, m[1] + b};
          Vector mu = multiply(at, phi);
          mean_labels(Link::kCategorical, mu);
          const double w = h * h * std::exp(-(a * a + b * b) / 2) / (2 * std::numbers::pi);
          for (std::size_t o = 0; o < 2; ++o)
            for (std::size_t j = 0; j < 2; ++j) sum(o, j) += w * mu[o] * phi[j];
        }
      return sum;
    };
    const LinkMoments e = link_moments(Link::kCategorical, m, X, true);
    const Matrix want = integral(X);
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(e.with_phi.all()[j], want.all()[j], 1e-12);
      Matrix up = X, down = X;
      up.all()[j] += 1e-4, down.all()[j] -= 1e-4;
      const Matrix above = integral(up), below = integral(down);
      for (std::size_t r = 0; r < 4; ++r)
        EXPECT_NEAR(e.curvature(r, j), (above.all()[r] - below.all()[r]) / 2e-4, 1e-7);
    }
  }
}

// Labels have their means: 20,480 draws of each kind, 4.5 standard deviations.
TEST(Glm, LabelsHaveTheirMeans) {
  const Lanes lanes{0, 64};
  for (const auto& [link, classes] : {std::pair{Link::kCategorical, 3}, {Link::kPoisson, 2}}) {
    Glm::Config config{
        .agents = 64, .dim = 2, .classes = classes, .spread = 1, .length = 0.5, .noise = 0.5};
    const Glm drawn(link, config, 2, 0);
    config.drawn = false;
    const Glm means(link, config, 2, 0);
    const int q = drawn.outputs(), rows = 2 + 2 * q;
    const Buffer a(static_cast<std::size_t>(rows) * kLanes), b(a.size());
    std::vector<double> gap(static_cast<std::size_t>(q)), variance(gap.size());
    for (std::uint32_t t = 0; t < 320; ++t) {
      drawn.draw({{1, 0, t}, {}}, {lanes, nullptr}, {a.data(), rows});
      means.draw({{1, 0, t}, {}}, {lanes, nullptr}, {b.data(), rows});
      for (int o = 0; o < q; ++o)
        for (int i = 0; i < 64; ++i) {
          const double y = a.data()[(2 + q + o) * kLanes + i],
                       mu = b.data()[(2 + q + o) * kLanes + i];
          EXPECT_EQ(y, std::round(y));
          gap[static_cast<std::size_t>(o)] += y - mu;
          variance[static_cast<std::size_t>(o)] += link == Link::kPoisson ? mu : mu * (1 - mu);
        }
    }
    for (std::size_t o = 0; o < gap.size(); ++o)
      EXPECT_LT(std::abs(gap[o]), 4.5 * std::sqrt(variance[o]));
  }
}

// With the model's own link as central objective theta^c and x^c are one recursion: the correction
// is 0, and AffPCL is independent learning, to the bit.
TEST(Glm, ItsOwnLinkAsCentralObjectiveIsIndependentLearning) {
  const auto error = [](const char* Phi) {
    const StudyResult result = run_study(
        read_study(std::string("[problem]\nkind = \"softmax\"\nagents = 5\nPhi = \"") + Phi +
                       "\"\n[run]\nsteps = 20\nreplicates = 2\n[[method]]\nkind = \"affpcl\"\n"
                       "[[method]]\nkind = \"independent\"\n",
                   "test"),
        {});
    return result.settings.at(0).methods[0].vs_independent.mean;
  };
  EXPECT_EQ(error("link"), 1);
  EXPECT_NE(error("channels"), 1);
}

TEST(Logistic, HasNoMeansSoARelativeScheduleIsRefused) {
  const Logistic problem({.agents = 3}, 1, 0);
  EXPECT_EQ(problem.means(), nullptr);
  EXPECT_THROW(run_study(read_study(R"(
[problem]
kind = "logistic"
[run]
step_size = {schedule = "diminishing"}
[[method]]
kind = "independent"
)",
                                    "test"),
                         {}),
               BadInput);
}

}  // namespace
}  // namespace affpcl
