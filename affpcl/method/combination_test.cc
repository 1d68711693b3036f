#include "affpcl/method/combination.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

// One agent with four unknowns and A = I, whose samples are the four unit vectors b: the
// combination is driven by hand with any h.
class Bench {
 public:
  explicit Bench(bool averaged = false) : problem_(system(), Tabular::Coe::kAuto) {
    steps_.agent.schedule.value = kStep;
    combination_.declare({problem_, steps_, 1, 1, 1, 1000, averaged}, agent_);
    agents_ = Store(agent_.rows(), 1);
    combination_.start(problem_, agents_.block(0));
  }
  // The agent draws sample s and has this h; the distance that z is away from y, and |y - x*|^2.
  double step(int s, const std::array<double, 4>& h) {
    scratch_.clear(1);
    std::vector<double> sample(kLanes * 5, 0.0);
    sample[0] = s;
    for (int r = 0; r < 4; ++r) sample[static_cast<std::size_t>((1 + r) * kLanes)] = r == s ? 1 : 0;
    const Batch batch{.p = sample.data(), .state_rows = 1, .d = 4};
    const Block block{{problem_, steps_, at_++, 1, scratch_}, batch, agents_.block(0), {}};
    const Out H = scratch_.rows(4), X = scratch_.rows(4), before = scratch_.rows(4);
    for (int r = 0; r < 4; ++r) before.row(r)[0] = x_[static_cast<std::size_t>(r)];
    for (int r = 0; r < 4; ++r) {
      const auto R = static_cast<std::size_t>(r);
      H.row(r)[0] = h[R];
      x_[R] -= kStep * (x_[R] - (r == s ? 1 : 0) + h[R]);
      X.row(r)[0] = x_[R];
    }
    Combination::Walk walk(combination_, block, before);
    walk.step(0, H);
    walk.end(X);
    double square = 0;
    for (int r = 0; r < 4; ++r) {
      z_[static_cast<std::size_t>(r)] = combination_.solution(agents_.block(0)).at(r, 0);
      y_[static_cast<std::size_t>(r)] = agents_.block(0)[{0, 4}].row(r)[0];
      square += std::pow(z_[static_cast<std::size_t>(r)] - y_[static_cast<std::size_t>(r)], 2);
    }
    return square;
  }
  double share() const { return combination_.share(agents_.block(0)).p[0]; }
  const std::array<double, 4>& z() const { return z_; }

 private:
  static constexpr double kStep = 0.1;
  static FiniteSystem system() {
    FiniteSystem f;
    f.agents = 1, f.states = 4, f.d = 4, f.k = 4;
    for (int s = 0; s < 4; ++s)
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) {
          f.A.push_back(r == c);
          f.Phi.push_back(r == s && r == c);
        }
    f.mu = {0.25, 0.25, 0.25, 0.25}, f.theta = {1, 1, 1, 1};
    return f;
  }

  Tabular problem_;
  StepSizes steps_;
  Combination combination_{true};
  Layout agent_;
  Store agents_;
  Scratch scratch_;
  std::int64_t at_ = 0;
  std::array<double, 4> x_{}, y_{}, z_{};
};

// Samples in an order without a pattern of period 2.
int sample(int t) { return static_cast<int>((std::uint32_t(t) * 2654435761u) >> 30); }

// h that cancels the noise b - bbar of the sample, and nothing else.
std::array<double, 4> cancels(int s) {
  std::array<double, 4> h{};
  for (int r = 0; r < 4; ++r) h[static_cast<std::size_t>(r)] = (r == s ? 1 : 0) - 0.25;
  return h;
}

TEST(Combination, TakesWhatCancelsItsNoise) {
  Bench b;
  for (int t = 0; t < 400; ++t) b.step(sample(t), cancels(sample(t)));
  EXPECT_GT(b.share(), 0.97);
  for (double z : b.z()) EXPECT_NEAR(z, 0.25, 0.02);
}

// What h does not leave of the noise is known from few rounds.
TEST(Combination, TakesWhatCancelsInTwentyRounds) {
  Bench b;
  for (int t = 0; t < 20; ++t) b.step(sample(t), cancels(sample(t)));
  EXPECT_GT(b.share(), 0.9);
}

// The distance to y is bounded by the noise of y's own directions, before a bias is seen, too.
TEST(Combination, StaysInItsBall) {
  Bench b;
  double farthest = 0;
  for (int t = 0; t < 400; ++t) {
    std::array<double, 4> h = cancels(sample(t));
    for (double& x : h) x += t < 200 ? 0 : 3;
    farthest = std::max(farthest, b.step(sample(t), h));
  }
  // A step of y has |e|^2 = 3/4 and rho = .81: N_y = .01 * .75 / .19.
  EXPECT_LT(farthest, 4 * 0.01 * 0.75 / 0.19 * 1.5);
}

TEST(Combination, DropsNoiseInAnyUnits) {
  for (const double unit : {1e-3, 1.0, 1e5}) {
    Bench b;
    for (int t = 0; t < 400; ++t)
      b.step(sample(t), {unit * std::sin(1.7 * t), unit * std::cos(2.9 * t), 0, 0});
    EXPECT_LT(b.share() * unit, 0.3);
  }
}

TEST(Combination, DropsABias) {
  Bench b;
  for (int t = 0; t < 400; ++t) {
    std::array<double, 4> h = cancels(sample(t));
    h[0] += 3;
    b.step(sample(t), h);
  }
  EXPECT_LT(b.share(), 0.05);
}

// A bias of a tenth of the noise is below what the last iterate's noise shows, and not below what
// an average leaves of it.
TEST(Combination, AveragesNeedLessBias) {
  Bench last, averaged(true);
  for (int t = 0; t < 3000; ++t) {
    std::array<double, 4> h = cancels(sample(t));
    for (double& x : h) x += 0.08;
    last.step(sample(t), h);
    averaged.step(sample(t), h);
  }
  EXPECT_GT(last.share(), 3 * averaged.share());
}

// What is not finite is dropped, and the agent goes on with y.
TEST(Combination, GoesOnAloneWhenTheCollaborationDiverges) {
  Bench b, alone;
  for (int t = 0; t < 100; ++t) {
    const double far = t < 20 ? 0.1 : std::numeric_limits<double>::infinity();
    EXPECT_TRUE(std::isfinite(b.step(sample(t), {far, 0, 0, 0})));
    alone.step(sample(t), {0, 0, 0, 0});
  }
  EXPECT_EQ(b.share(), 0);
  EXPECT_EQ(b.z(), alone.z());
}

TEST(Combination, NothingIsDeclaredWithoutAGuard) {
  const Tabular problem(Tabular::generate({.agents = 2}, 1, 0), Tabular::Coe::kAuto);
  const StepSizes steps;
  Layout agent;
  Combination(false).declare({problem, steps, 1, 1, 1, 10}, agent);
  EXPECT_EQ(agent.rows(), 0);
}

}  // namespace
}  // namespace affpcl
