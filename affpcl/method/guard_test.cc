#include "affpcl/method/guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

// A guard with two agents of two unknowns, driven by hand.
class Bench {
 public:
  explicit Bench(Guard::Mode mode)
      : problem_(Tabular::generate({.agents = 2, .dim = 2, .states = 2}, 1, 0),
                 Tabular::Coe::kAuto),
        guard_(mode) {
    guard_.declare({problem_, steps_, 1, 1, 1, 100}, agent_, centre_, sum_);
    agents_ = Store(agent_.rows(), 2);
    shared_ = Buffer(static_cast<std::size_t>(centre_.rows()) + 1);
  }
  // Both agents have this g and h; what becomes of h.
  std::array<double, 2> step(std::array<double, 2> g, std::array<double, 2> h) {
    scratch_.clear();
    const Block block{{problem_, steps_, at_, 1, scratch_}, {}, agents_.block(0), {shared_.data()}};
    std::vector<double> mean(static_cast<std::size_t>(sum_.size()) + 1);
    guard_.contribute(block, Message(mean.data(), {0, 2}));
    for (double& x : mean) x /= 2;
    guard_.centre(block.round, {mean.data()}, {shared_.data()});
    const Out G = scratch_.rows(2), H = scratch_.rows(2);
    fill(G, 0), fill(H, 0);
    for (int r = 0; r < 2; ++r)
      for (int l = 0; l < 2; ++l)
        G.row(r)[l] = g[static_cast<std::size_t>(r)], H.row(r)[l] = h[static_cast<std::size_t>(r)];
    guard_.apply(block, G, H);
    ++at_;
    return {H.row(0)[1], H.row(1)[1]};
  }

 private:
  Tabular problem_;
  StepSizes steps_;
  Guard guard_;
  Layout agent_, centre_;
  SumLayout sum_;
  Store agents_;
  Buffer shared_;
  Scratch scratch_;
  std::int64_t at_ = 0;
};

using Pair = std::array<double, 2>;

// Means weigh step tau by tau^2; c is their ratio with one step's worth of belief in 1.
TEST(Guard, WeighsByThePast) {
  Bench b(Guard::Mode::kWeight);
  EXPECT_EQ(b.step({1, 0}, {-1, 2}), (Pair{-1, 2}));  // nothing is known: c = 1
  // <g,h> = -1, <h,h> = 5; c = (5 + 1) / (2 * 5)
  const Pair second = b.step({0, 1}, {4, 0});
  EXPECT_NEAR(second[0], 0.6 * 4, 1e-15);
  // now <g,h> = (1 * -1 + 4 * 0)/5, <h,h> = (1 * 5 + 4 * 16)/5; c = (h + 2 * 0.2) / (3 h)
  const double hh = 69.0 / 5;
  EXPECT_NEAR(b.step({0, 0}, {1, 0})[0], (hh + 2 * 0.2) / (3 * hh), 1e-15);
}

TEST(Guard, KeepsWhatCancelsAndDropsWhatDoesNot) {
  Bench cancels(Guard::Mode::kWeight), useless(Guard::Mode::kWeight), harmful(Guard::Mode::kWeight);
  Pair kept{}, dropped{}, refused{};
  for (int t = 0; t < 200; ++t) {
    const double u = std::sin(t * 1.7), v = std::cos(t * 2.9);
    kept = cancels.step({u, v}, {-u, -v});
    dropped = useless.step({u, 0}, {0, 3 * v});
    refused = harmful.step({u, v}, {u, v});
  }
  const double u = std::sin(199 * 1.7), v = std::cos(199 * 2.9);
  EXPECT_NEAR(kept[0], -u, 1e-12);
  EXPECT_NEAR(kept[1], -v, 1e-12);
  EXPECT_NEAR(dropped[1], 0, 0.05);
  EXPECT_EQ(refused, (Pair{0, 0}));
}

// A constant h is all bias: nearly all of it is taken off in the end by `full`, nothing by
// `weight`.
TEST(Guard, TakesOffAMean) {
  Bench full(Guard::Mode::kFull), weight(Guard::Mode::kWeight);
  Pair with{}, without{};
  for (int t = 0; t < 100; ++t) {
    const double u = std::sin(t * 1.7);
    with = full.step({-5 + u, u}, {5 - u, -u});
    without = weight.step({-5 + u, u}, {5 - u, -u});
  }
  const double u = std::sin(99 * 1.7);
  EXPECT_NEAR(with[0], -u, 0.1);
  EXPECT_NEAR(without[0], 5 - u, 1e-12);
}

// h with mean 0 is left alone, to the bit, as soon as two agents can tell.
TEST(Guard, LeavesMeanZeroAlone) {
  Bench full(Guard::Mode::kFull), weight(Guard::Mode::kWeight);
  for (int t = 0; t < 300; ++t) {
    const double sign = t % 2 == 0 ? 1 : -1, u = sign * (1 + 0.3 * std::sin(t * 1.7));
    const Pair a = full.step({u, -u}, {-u, u}), b = weight.step({u, -u}, {-u, u});
    if (t > 10) {
      EXPECT_EQ(a, b) << t;
    }
  }
}

TEST(Guard, NoneDeclaresNothing) {
  const Tabular problem(Tabular::generate({.agents = 2}, 1, 0), Tabular::Coe::kAuto);
  const StepSizes steps;
  Layout agent, centre;
  SumLayout sum;
  Guard none(Guard::Mode::kNone), full(Guard::Mode::kFull);
  none.declare({problem, steps, 1, 1, 1, 10}, agent, centre, sum);
  EXPECT_EQ(agent.rows() + centre.rows() + sum.size(), 0);
  full.declare({problem, steps, 1, 1, 1, 10}, agent, centre, sum);
  EXPECT_EQ(sum.size(), 2);  // numbers more that an agent sends
}

}  // namespace
}  // namespace affpcl
