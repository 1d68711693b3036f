#include "affpcl/runtime/run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/harness_test.h"

namespace affpcl {
namespace {

// ---- the same numbers for everyone ----

class RunOnTeams : public ::testing::TestWithParam<int> {};

TEST_P(RunOnTeams, GivesTheSameBits) {
  const Gaussian problem({.agents = GetParam(), .dim = 3}, 2, 0);
  const std::size_t count = every_method(0.002).size();
  std::vector<double> want;
  for (int threads : {1, 2, 3}) {
    const std::unique_ptr<Team> team = thread_team(threads);
    Loop run(problem, every_method(0.002), options(8), *team);
    run.advance(8);
    const std::vector<double> got = pictures(run, problem, count);
    if (want.empty()) want = got;
    EXPECT_TRUE(same_bits(got, want)) << threads << " threads";
  }
}

TEST_P(RunOnTeams, GoesOnAfterSaveAndLoad) {
  const Gaussian problem({.agents = GetParam(), .dim = 3}, 2, 0);
  const std::unique_ptr<Team> one = serial_team(), two = thread_team(2);
  const std::size_t count = every_method(0.002).size();
  Loop through(problem, every_method(0.002), options(16), *one);
  through.advance(16);
  const std::vector<double> want = pictures(through, problem, count);
  // A round drawn at random, and one in the middle of a period; saved twice on the way.
  const auto at = static_cast<std::int64_t>(
      1 + 14 * uniform({GetParam() * 1ull, 0, 0}, 0, Purpose::kMethod, 0));
  for (const std::int64_t stop : {at, std::int64_t{5}}) {
    Loop first(problem, every_method(0.002), options(16), *one);
    first.advance(stop);
    Loop second(problem, every_method(0.002), options(16), *two);
    second.load(first.save());
    EXPECT_EQ(second.step(), stop);
    second.advance(stop + 1);
    Loop third(problem, every_method(0.002), options(16), *one);
    third.load(second.save());
    third.advance(16);
    EXPECT_TRUE(same_bits(pictures(third, problem, count), want)) << "saved after step " << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Agents, RunOnTeams, ::testing::Values(20, 300, 1000));

TEST(RunOf, PiecesIsTheRunOfTheWhole) {
  const Gaussian problem({.agents = 20}, 2, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop whole(problem, every_method(0.002), options(20), *team),
      pieces(problem, every_method(0.002), options(20), *team);
  whole.advance(1000);  // no further than its steps
  EXPECT_EQ(whole.step(), 20);
  for (std::int64_t until : {1, 2, 3, 9, 9, 4, 20}) pieces.advance(until);
  EXPECT_TRUE(pieces.done());
  const std::size_t count = every_method(0.002).size();
  EXPECT_TRUE(same_bits(pictures(pieces, problem, count), pictures(whole, problem, count)));
}

TEST(RunOf, AnotherSeedOrReplicateIsAnotherRun) {
  const Gaussian problem({.agents = 20}, 2, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto last = [&](std::uint64_t seed, std::uint32_t replicate) {
    RunOptions o = options(5);
    o.seed = seed;
    o.replicate = replicate;
    Loop run(problem, methods({"independent"}), o, *team);
    run.advance(5);
    return run.solution(0, 3, 0);
  };
  EXPECT_EQ(last(1, 0), last(1, 0));
  EXPECT_NE(last(1, 0), last(2, 0));
  EXPECT_NE(last(1, 0), last(1, 1));
}

// ---- divergence ----

TEST(RunDivergence, IsFlaggedAndLeavesTheOthersAlone) {
  const Gaussian problem({.agents = 300, .dim = 3}, 5, 0);
  const std::unique_ptr<Team> team = serial_team();
  for (double alpha : {1.0, 1e30, 1e300}) {  // slowly, at once, and past what a number can hold
    std::vector<RunMethod> both = methods({"affpcl"}, 0.002);
    both.push_back(make_method(method_kind("independent"), constant_step(alpha)));
    both.push_back(make_method(method_kind("fedavg"), constant_step(0.002)));
    Loop run(problem, std::move(both), options(40), *team);
    run.advance(40);
    EXPECT_TRUE(run.done());
    const std::vector<Record> records = run.finish();
    EXPECT_EQ(records[0].diverged_at, -1);
    EXPECT_EQ(records[2].diverged_at, -1);
    ASSERT_GT(records[1].diverged_at, 0) << alpha;
    EXPECT_LT(records[1].diverged_at, 40);
    EXPECT_EQ(records[1].steps.back(), static_cast<double>(records[1].diverged_at));
    Loop calm(problem, methods({"affpcl", "fedavg"}, 0.002), options(40), *team);
    calm.advance(40);
    EXPECT_TRUE(same_bits(picture(run, problem, 0), picture(calm, problem, 0)));
    EXPECT_TRUE(same_bits(picture(run, problem, 2), picture(calm, problem, 1)));
  }
}

// A long run is looked at where its curve has a point and every 16th step, in pieces and watched as
// in one go; what it is given up at is what a run that is looked at every step exceeded before.
TEST(RunDivergence, IsSeenSoonWhereTheCurveIsThin) {
  const Gaussian problem({.agents = 70, .dim = 3}, 5, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto outcome = [&](std::int64_t points, std::int64_t piece, bool watched) {
    RunOptions o = options(400);
    o.curve_points = points;
    Loop run(problem, methods({"affpcl"}, 0.12), o, *team);
    if (watched) run.watch([](std::size_t, std::int64_t) {});
    while (!run.done()) run.advance(run.step() + piece);
    return std::pair(run.finish().front().diverged_at, picture(run, problem, 0));
  };
  const std::int64_t exceeded = outcome(400, 400, false).first;
  ASSERT_GT(exceeded, 16);
  ASSERT_NE(exceeded % 16, 0);
  const auto [seen, where] = outcome(1, 400, false);
  EXPECT_EQ(seen, exceeded / 16 * 16 + 16);
  for (const std::int64_t piece : {1, 7, 16})
    for (const bool watched : {false, true}) {
      const auto [then, there] = outcome(1, piece, watched);
      EXPECT_EQ(then, seen);
      EXPECT_TRUE(same_bits(there, where));
    }
}

// A team keeps its memory from run to run, and nothing else.
TEST(RunDivergence, IsTheSameOnATeamThatHasRunBefore) {
  const Gaussian problem({.agents = 60, .dim = 3}, 5, 0), small({.agents = 3, .dim = 30}, 5, 0);
  const std::unique_ptr<Team> fresh = serial_team(), used = serial_team();
  Loop before(small, methods({"affpcl"}), options(4), *used);
  before.advance(4);
  const auto outcome = [&](Team& team) {
    Loop run(problem, methods({"affpcl"}, 0.12), options(400), team);
    run.advance(400);
    return std::pair(run.finish().front().diverged_at, picture(run, problem, 0));
  };
  const auto [then, there] = outcome(*fresh);
  ASSERT_GT(then, 0);
  const auto [again, same] = outcome(*used);
  EXPECT_EQ(again, then);
  EXPECT_TRUE(same_bits(same, there));
}

TEST(RunDivergence, IsRememberedInASavedState) {
  const Gaussian problem({.agents = 5, .dim = 2}, 5, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"independent"}, 1.0), options(40), *team),
      other(problem, methods({"independent"}, 1.0), options(40), *team);
  run.advance(30);
  ASSERT_GT(run.finish().front().diverged_at, 0);
  other.load(run.save());
  other.advance(40);
  EXPECT_EQ(other.finish().front().diverged_at, run.finish().front().diverged_at);
}

TEST(RunDivergence, AStateFromBeforeGoesOnAsItDid) {
  const Gaussian problem({.agents = 20, .dim = 3}, 6, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"affpcl"}, 0.5), options(200), *team),
      again(problem, methods({"affpcl"}, 0.5), options(200), *team);
  run.advance(1);
  const RunState early = run.save();
  run.advance(200);
  ASSERT_GT(run.finish()[0].diverged_at, 3);
  run.load(early);
  run.advance(3);
  again.advance(3);
  EXPECT_TRUE(same_bits(pictures(run, problem, 1), pictures(again, problem, 1)));
}

// The scale is how long the solutions are, or 1 where all are zero: such a system, started
// elsewhere, converges and must not be given up.
TEST(RunDivergence, ASolutionOfZeroIsNotADivergence) {
  FiniteSystem f = Tabular::generate({.agents = 4, .dim = 2}, 1, 0);
  f.theta.assign(f.theta.size(), 0.0);
  f.x0.assign(8, 1.0);
  const Tabular problem(f, Tabular::Coe::kAuto);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"independent"}, 0.1), options(50), *team);
  run.advance(50);
  EXPECT_EQ(run.finish().front().diverged_at, -1);
  EXPECT_LT(mse(run, problem, 0), 1e-3);
}

// ---- stopping ----

TEST(RunStop, EndsAtARoundsEndAndCanGoOn) {
  const Gaussian problem({.agents = 20, .dim = 3}, 6, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop whole(problem, methods({"affpcl", "fedavg"}), options(10), *team);
  whole.advance(10);
  Loop run(problem, methods({"affpcl", "fedavg"}), options(10), *team);
  std::atomic<bool> stop{false};
  run.watch([&](std::size_t m, std::int64_t step) {
    if (m == 0 && step == 4) stop = true;  // in the middle of step 4: fedavg still has its turn
  });
  run.advance(10, &stop);
  EXPECT_EQ(run.step(), 4);
  EXPECT_FALSE(run.done());
  EXPECT_EQ(run.finish()[0].steps.size(), 4u);
  EXPECT_EQ(run.finish()[1].steps.size(), 4u);
  run.advance(10, &stop);
  EXPECT_EQ(run.step(), 4);
  stop = false;
  run.advance(10, &stop);
  EXPECT_TRUE(same_bits(pictures(run, problem, 2), pictures(whole, problem, 2)));
}

TEST(RunStop, BeforeTheTailShowsWhereItStood) {
  const Gaussian problem({.agents = 20, .dim = 3}, 6, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"affpcl"}), options(100), *team);
  EXPECT_TRUE(std::isnan(run.finish().front().mse));
  run.advance(7);
  const Record r = run.finish().front();
  EXPECT_EQ(r.mse, r.curve.back());
  double agents = 0;
  for (double e : r.agent_mse) agents += e / 20;
  EXPECT_NEAR(agents, r.mse, 1e-13 * r.mse);
}

// Rounds of 7 samples as steps of 3, 3 and 1: each step takes the mean of its own.
TEST(RunSamples, UnevenStepsAverageWhatTheyTake) {
  const Gaussian problem({.agents = 5, .dim = 2}, 4, 0);
  const std::unique_ptr<Team> team = serial_team();
  const RunOptions o = options(6);
  std::vector<RunMethod> methods;
  methods.push_back(make_method(method_kind("independent"), constant_step(0.01), 3, 3));
  methods.back().last = 1;
  Loop run(problem, std::move(methods), o, *team);
  run.advance(6);

  Layout world, sample;
  problem.declare(world, sample);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes), space(6 * kLanes);
  const Out s{state.data(), sample.rows()}, x{space.data(), 2}, Ax{space.data() + 2 * kLanes, 2},
      b{space.data() + 4 * kLanes, 2};
  const Lanes lanes{0, 5};
  for (std::uint32_t t = 0; t < 6; ++t) {
    const std::uint32_t count = t % 3 == 2 ? 1 : 3;
    std::vector<double> g(2 * kLanes);
    for (std::uint32_t m = 0; m < count; ++m) {
      problem.draw({{o.seed, o.replicate, 3 * t + m}, {}}, {lanes, nullptr}, s);
      apply(problem, lanes, s, x, Ax);
      problem.objective(lanes, s, b);
      for (std::size_t k = 0; k < g.size(); ++k) g[k] += (Ax.p[k] - b.p[k]) / count;
    }
    for (std::size_t k = 0; k < g.size(); ++k) x.p[k] -= 0.01 * g[k];
  }
  for (std::int64_t i = 0; i < 5; ++i)
    for (int r = 0; r < 2; ++r) EXPECT_NEAR(run.solution(0, i, r), x.row(r)[i], 1e-14);
}

// ---- refusals ----

TEST(RunRefuses, StatesOfOtherRuns) {
  const Gaussian small({.agents = 20, .dim = 3}, 6, 0), large({.agents = 70, .dim = 3}, 6, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop one(small, methods({"affpcl"}), options(5), *team),
      two(small, methods({"affpcl", "affpcl"}), options(5), *team),
      many(large, methods({"affpcl"}), options(5), *team),
      plain(small, methods({"independent"}), options(5), *team);
  one.advance(2);
  two.advance(2);
  EXPECT_THROW(many.load(one.save()), BadInput);
  EXPECT_THROW(plain.load(one.save()), BadInput);
  EXPECT_THROW(two.load(one.save()), BadInput) << "a state with too little";
  EXPECT_THROW(one.load(two.save()), BadInput) << "a state with too much";
}

TEST(RunRefuses, MoreSamplesThanThereAre) {
  FiniteSystem f = Tabular::generate({.agents = 2, .dim = 1, .states = 2}, 1, 0);
  f.steps = 6;
  f.order.assign(12, 0);
  const Tabular problem(f, Tabular::Coe::kAuto);
  const std::unique_ptr<Team> team = serial_team();
  EXPECT_NO_THROW(Loop(problem, methods({"independent"}), options(6), *team));
  EXPECT_NO_THROW(Loop(problem, methods({"independent"}, 0.1, 1, 2), options(3), *team));
  EXPECT_THROW(Loop(problem, methods({"independent"}), options(7), *team), BadInput);
  EXPECT_THROW(Loop(problem, methods({"independent"}, 0.1, 1, 2), options(4), *team), BadInput);
}

// A sample's number is one 32-bit word of its random stream: beyond it samples would come again.
TEST(RunRefuses, MoreSamplesThanTheStreamHas) {
  const Gaussian problem({.agents = 2, .dim = 1}, 1, 0);
  const std::unique_ptr<Team> team = serial_team();
  EXPECT_THROW(Loop(problem, methods({"independent"}, 0.1, 1, 2), options(3'000'000'000), *team),
               BadInput);
}

TEST(RunRefuses, WhatTheProblemLacks) {
  FiniteSystem f;  // b without Phi
  f.agents = 1, f.states = 1, f.d = 1;
  f.A = {1}, f.mu = {1}, f.b = {1};
  const Tabular problem(f, Tabular::Coe::kAuto);
  const Gaussian gaussian({.agents = 2}, 1, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto affpcl = [&](const Problem& p, const conformance::Given& given) {
    std::vector<RunMethod> m;
    m.push_back(make_method(method_kind("affpcl"), constant_step(0.1), 1, 1, given));
    Loop run(p, std::move(m), options(3), *team);
    run.advance(3);
  };
  EXPECT_THROW(affpcl(problem, {}), BadInput);  // objective = learnt needs Phi
  EXPECT_NO_THROW(affpcl(problem, {{"objective", std::string("tabular")}}));
  EXPECT_NO_THROW(affpcl(problem, {{"objective", std::string("known")}}));
  EXPECT_THROW(affpcl(gaussian, {{"objective", std::string("tabular")}}), BadInput);
}

// ---- worlds: a problem that remembers, and whose samples look at the iterate ----

// x is one number; sample (w, a): w counts the agent's samples so far, a is the iterate that acts.
// A = 1, b = w + a / 2.
class Walker final : public Problem {
 public:
  // The fifth draw of an agent asks to stop, where somebody listens.
  Walker(std::int64_t agents, bool acts, std::atomic<bool>* stop = nullptr)
      : agents_(agents), acts_(acts), stop_(stop) {}
  Shape shape() const override {
    return {.agents = agents_, .d = 1, .k = 0, .p = 0, .acts = acts_};
  }
  void declare(Layout& world, Layout& sample) const override {
    w_ = world.add("w", 1);
    sample.add("s", 2);
  }
  void draw(const Draw& draw, Agents world, Out s) const override {
    for (int l = 0; l < world.lanes.count; ++l) {
      s.row(0)[l] = ++world[w_].row(0)[l];
      s.row(1)[l] = acts_ ? draw.acting.at(0, l) : 0;
      if (stop_ != nullptr && s.row(0)[l] == 5) *stop_ = true;
    }
  }
  void direction(Lanes, In, In b, In x, Scratch&, Out g) const override {
    copy(x, g);
    subtract_objective(b, g);
  }
  void objective(Lanes lanes, In s, Out b) const override {
    for (int l = 0; l < lanes.count; ++l) b.row(0)[l] = s.at(0, l) + s.at(1, l) / 2;
  }

 private:
  std::int64_t agents_;
  bool acts_;
  std::atomic<bool>* stop_;
  mutable Field w_;
};

TEST(RunWorld, IsRememberedSavedAndSeenThroughTheIterate) {
  const std::unique_ptr<Team> team = serial_team();
  for (const bool acts : {false, true})
    for (int period : {1, 3}) {
      const Walker problem(70, acts);
      const auto start = [&] {
        std::vector<RunMethod> two = methods({"independent"}, 0.5, period);
        two.push_back(make_method(method_kind("independent"), constant_step(0.25), period));
        return std::make_unique<Loop>(problem, std::move(two), options(7), *team);
      };
      const std::unique_ptr<Loop> run = start(), later = start();
      run->advance(4);
      later->load(run->save());
      later->advance(7);
      run->advance(7);
      for (std::size_t m = 0; m < 2; ++m) {
        const double alpha = m == 0 ? 0.5 : 0.25;
        double x = 0, acting = 0;  // within a round the iterate of its start acts
        for (int t = 0; t < 7; ++t) {
          if (t % period == 0) acting = x;
          x -= alpha * (x - (t + 1 + (acts ? acting / 2 : 0)));
        }
        for (std::int64_t agent : {0, 69}) {
          EXPECT_EQ(run->solution(m, agent, 0), x) << "acts " << acts << " period " << period;
          EXPECT_EQ(later->solution(m, agent, 0), x);
        }
      }
      // No truth: nothing is scored, and it says so.
      EXPECT_TRUE(std::isnan(run->finish().front().mse));
      EXPECT_TRUE(run->finish().front().curve.empty());
    }
}

// Rounds may begin while the one before them ends; not where a run stops, for it can be saved
// there.
TEST(RunWorld, AStopLeavesNoRoundBegun) {
  const std::unique_ptr<Team> team = serial_team();
  for (const bool acts : {false, true})
    for (const std::vector<std::string>& names :
         {std::vector<std::string>{"fedavg"}, {"fedavg", "independent"}}) {
      std::atomic<bool> stop{false};
      const Walker problem(300, acts, &stop);
      Loop whole(problem, methods(names), options(10), *team),
          run(problem, methods(names), options(10), *team),
          later(problem, methods(names), options(10), *team);
      whole.advance(10);
      stop = false;
      run.advance(10, &stop);
      EXPECT_TRUE(stop);
      EXPECT_GE(run.step(), 4);
      EXPECT_LE(run.step(), 6);
      later.load(run.save());
      later.advance(10);
      run.advance(10);
      for (std::size_t m = 0; m < names.size(); ++m)
        for (std::int64_t agent : {0, 299}) {
          EXPECT_EQ(run.solution(m, agent, 0), whole.solution(m, agent, 0));
          EXPECT_EQ(later.solution(m, agent, 0), whole.solution(m, agent, 0));
        }
    }
}

}  // namespace
}  // namespace affpcl
