#include "affpcl/runtime/run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "tests/conformance.h"

namespace affpcl {
namespace {

using conformance::constant_step;
using conformance::make_method;
using conformance::picture;
using conformance::same_bits;
using Loop = Run;  // inside a TEST, Run is GoogleTest's own

std::vector<Method> methods(const std::vector<std::string>& kinds, double alpha = 0.005,
                            int period = 1, int batch = 1) {
  std::vector<Method> all;
  for (const std::string& kind : kinds)
    all.push_back(make_method(method_kind(kind), constant_step(alpha), period, batch));
  return all;
}

// All methods of the catalogue with periods 1, 3 and 7 and batches of 1 and 2, in one run.
std::vector<Method> every_method(double alpha) {
  std::vector<Method> all;
  const std::pair<int, int> shapes[] = {{1, 1}, {3, 1}, {7, 2}};
  for (const MethodKind& kind : method_kinds())
    for (const auto& [period, batch] : shapes)
      all.push_back(make_method(kind, constant_step(alpha), period, batch));
  return all;
}

std::vector<double> pictures(Loop& run, const Problem& problem, std::size_t count) {
  std::vector<double> all;
  for (std::size_t m = 0; m < count; ++m) {
    const std::vector<double> one = picture(run, problem, m);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

RunOptions options(std::int64_t steps) {
  RunOptions o;
  o.steps = steps;
  o.tail = std::min<std::int64_t>(4, steps);
  return o;
}

double squared(double x) { return x * x; }

// Mean squared error of the run's current iterates, straight from the truth.
double mse(const Loop& run, const Problem& problem, std::size_t method) {
  double sum = 0;
  const std::int64_t n = problem.shape().agents;
  const int d = problem.shape().d;
  for (std::int64_t i = 0; i < n; ++i)
    for (int r = 0; r < d; ++r)
      sum += squared(run.solution(method, i, r) -
                     problem.truth()->x.block(i / kLanes)[Field{0, d}].row(r)[i % kLanes]);
  return sum / static_cast<double>(n);
}

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

// ---- what is recorded ----

TEST(RunRecord, CurvesTailAndAgentsAgreeWithTheIterates) {
  const Gaussian problem({.agents = 70, .dim = 3}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  RunOptions o = options(12);
  o.tail = 5;
  o.curve_agents = {0, 65};
  Loop run(problem, methods({"affpcl", "fedavg"}), o, *team);
  std::vector<std::vector<double>> seen(2);
  std::vector<double> agent65;
  run.watch([&](std::size_t m, std::int64_t step) {
    if (step == 0) return;
    seen[m].push_back(mse(run, problem, m));
    if (m == 0) {
      double sum = 0;
      for (int r = 0; r < 3; ++r)
        sum += squared(run.solution(0, 65, r) - problem.truth()->x.block(1)[Field{0, 3}].row(r)[1]);
      agent65.push_back(sum);
    }
  });
  run.advance(12);
  const std::vector<Record> records = run.finish();
  for (std::size_t m = 0; m < 2; ++m) {
    ASSERT_EQ(records[m].curve.size(), 12u);
    for (std::size_t t = 0; t < 12; ++t) {
      EXPECT_EQ(records[m].steps[t], static_cast<double>(t + 1));
      EXPECT_NEAR(records[m].curve[t], seen[m][t], 1e-13 * seen[m][t]);
    }
    double tail = 0, agents = 0;
    for (std::size_t t = 7; t < 12; ++t) tail += seen[m][t] / 5;
    for (double e : records[m].agent_mse) agents += e / 70;
    EXPECT_NEAR(records[m].mse, tail, 1e-13 * tail);
    EXPECT_NEAR(agents, tail, 1e-13 * tail);
    EXPECT_EQ(records[m].agent_mse.size(), 70u);
    EXPECT_EQ(records[m].diverged_at, -1);
    EXPECT_GT(records[m].seconds, 0);
  }
  ASSERT_EQ(records[0].agents.size(), 2u);
  for (std::size_t t = 0; t < 12; ++t)
    EXPECT_NEAR(records[0].agents[1][t], agent65[t], 1e-13 * agent65[t]);
  double last5 = 0;
  for (std::size_t t = 7; t < 12; ++t) last5 += agent65[t] / 5;
  EXPECT_NEAR(records[0].agent_mse[65], last5, 1e-13 * last5);
}

TEST(RunRecord, TheCentreIsScoredOverTheTail) {
  const Gaussian problem({.agents = 20, .dim = 3}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"affpcl", "fedavg", "independent"}), options(8), *team);
  double x = 0, theta = 0;
  run.watch([&](std::size_t m, std::int64_t step) {
    if (m != 0 || step <= 4) return;
    for (int r = 0; r < 3; ++r) {
      x += squared(run.central_x(0).p[r] - problem.truth()->xc[static_cast<std::size_t>(r)]) / 4;
      theta += squared(run.central_theta(0).p[r] -
                       problem.truth()->thetac[static_cast<std::size_t>(r)]) /
               4;
    }
  });
  run.advance(8);
  const std::vector<Record> records = run.finish();
  EXPECT_NEAR(records[0].central_x, x, 1e-13 * x);
  EXPECT_NEAR(records[0].central_theta, theta, 1e-13 * theta);
  EXPECT_TRUE(std::isfinite(records[1].central_x));
  EXPECT_TRUE(std::isnan(records[1].central_theta));
  EXPECT_TRUE(std::isnan(records[2].central_x));
}

TEST(RunRecord, LongCurvesAreThinnedEvenly) {
  const Gaussian problem({.agents = 2, .dim = 1}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto steps = [&](std::int64_t count, std::int64_t points, int period) {
    RunOptions o = options(count);
    o.curve_points = points;
    Loop run(problem, methods({"independent"}, 0.005, period), o, *team);
    run.advance(count);
    return run.finish().front().steps;
  };
  EXPECT_EQ(steps(100, 10, 1), (std::vector<double>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_EQ(steps(25, 10, 1), (std::vector<double>{3, 6, 9, 12, 15, 18, 21, 24, 25}));
  EXPECT_EQ(steps(25, 1000, 7), (std::vector<double>{7, 14, 21, 25}));
  EXPECT_EQ(steps(40, 4, 7), (std::vector<double>{14, 21, 35, 40}));
  EXPECT_EQ(steps(5, 1, 1), (std::vector<double>{5}));
}

// A thin curve takes fewer errors, and those it takes are the same.
TEST(RunRecord, AThinCurveIsPartOfTheWholeOne) {
  const Gaussian problem({.agents = 70, .dim = 3}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto record = [&](std::int64_t points, std::int64_t until) {
    RunOptions o = options(100);
    o.curve_points = points;
    o.curve_agents = {65};
    Loop run(problem, methods({"affpcl"}), o, *team);
    run.advance(until);
    return run.finish().front();
  };
  const Record whole = record(100, 100), thin = record(4, 100);
  ASSERT_EQ(thin.steps, (std::vector<double>{25, 50, 75, 100}));
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(thin.curve[k], whole.curve[25 * k + 24]);
    EXPECT_EQ(thin.agents[0][k], whole.agents[0][25 * k + 24]);
  }
  EXPECT_EQ(thin.mse, whole.mse);
  EXPECT_EQ(thin.agent_mse, whole.agent_mse);
  // Left in the middle, before the tail: agents' errors are of that moment.
  EXPECT_EQ(record(4, 53).agent_mse, record(100, 53).agent_mse);
}

TEST(RunRecord, TheWatcherSeesTheStartAndEveryRound) {
  const Gaussian problem({.agents = 2, .dim = 1}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  std::vector<Method> two = methods({"independent"});
  two.push_back(make_method(method_kind("fedavg"), constant_step(0.01), 3, 1));
  Loop run(problem, std::move(two), options(7), *team);
  std::vector<std::vector<std::int64_t>> steps(2);
  run.watch([&](std::size_t m, std::int64_t step) { steps[m].push_back(step); });
  run.advance(7);
  EXPECT_EQ(steps[0], (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(steps[1], (std::vector<std::int64_t>{0, 3, 6, 7}));
}

TEST(RunRecord, ARunIsFollowedStepByStepWithoutChangingIt) {
  const Gaussian problem({.agents = 70, .dim = 2}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, every_method(0.002), options(9), *team),
      alone(problem, every_method(0.002), options(9), *team);
  std::vector<std::int64_t> steps;
  run.advance(4, nullptr, [&] { steps.push_back(run.step()); });
  run.advance(9, nullptr, [&] { steps.push_back(run.step()); });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  alone.advance(9);
  const std::size_t count = every_method(0.002).size();
  EXPECT_TRUE(same_bits(pictures(run, problem, count), pictures(alone, problem, count)));
}

TEST(RunRecord, SentCountsTheNumbersOfTheSum) {
  const Gaussian problem({.agents = 20, .dim = 3}, 3, 0);
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, methods({"affpcl", "independent", "fedavg"}), options(1), *team);
  run.advance(1);
  EXPECT_EQ(run.finish()[0].sent, 3 + 3 + 20 * 3);  // CDL, COE, M
  EXPECT_EQ(run.finish()[1].sent, 0);
  EXPECT_EQ(run.finish()[2].sent, 3);
}

// ---- averaged iterates, by hand from a watched run ----

struct Watched {
  std::vector<double> curve;           // as recorded
  std::vector<std::int64_t> at;        // round ends, 0 first
  std::vector<std::vector<double>> x;  // all agents' iterates then
};

Watched watched(const Problem& problem, RunOptions::Iterate iterate, const StepSizes& step,
                int period, std::int64_t steps) {
  const std::unique_ptr<Team> team = serial_team();
  RunOptions o = options(steps);
  o.iterate = iterate;
  std::vector<Method> all;
  all.push_back(make_method(method_kind("affpcl"), step, period));
  Loop run(problem, std::move(all), o, *team);
  Watched w;
  run.watch([&](std::size_t, std::int64_t at) {
    w.at.push_back(at);
    w.x.emplace_back();
    for (std::int64_t i = 0; i < problem.shape().agents; ++i)
      for (int r = 0; r < problem.shape().d; ++r) w.x.back().push_back(run.solution(0, i, r));
  });
  run.advance(steps);
  w.curve = run.finish().front().curve;
  return w;
}

double mse_of(const std::vector<double>& x, const Problem& problem) {
  const int d = problem.shape().d;
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const auto i = static_cast<std::int64_t>(j) / d;
    const auto r = static_cast<int>(static_cast<std::int64_t>(j) % d);
    sum += squared(x[j] - problem.truth()->x.block(i / kLanes)[Field{0, d}].row(r)[i % kLanes]);
  }
  return sum / static_cast<double>(problem.shape().agents);
}

TEST(RunIterate, WeightedIsLemStepsAverage) {
  const Gaussian problem({.agents = 5, .dim = 2}, 4, 0);
  for (int period : {1, 3})
    for (const bool diminishing : {false, true}) {
      StepSizes step = constant_step(0.004);
      double t0 = 1;
      if (diminishing) {
        t0 = 40;
        step.agent = {{.kind = Schedule::Kind::kDiminishing, .t0 = t0}, 0.02};
      }
      const Watched w = watched(problem, RunOptions::Iterate::kWeighted, step, period, 10);
      std::vector<double> sum(w.x.front().size());
      double weights = 0;
      for (std::size_t k = 0; k < w.at.size(); ++k) {
        const double weight = static_cast<double>(w.at[k]) + t0;
        weights += weight;
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += weight * w.x[k][j];
        if (k == 0) continue;
        std::vector<double> average = sum;
        for (double& v : average) v /= weights;
        const double want = mse_of(average, problem);
        EXPECT_NEAR(w.curve[k - 1], want, 1e-12 * want) << "period " << period << " round " << k;
      }
    }
}

TEST(RunIterate, PolyakAveragesTheSecondHalf) {
  const Gaussian problem({.agents = 5, .dim = 2}, 4, 0);
  for (int period : {1, 3})
    for (std::int64_t steps : {10, 11}) {
      const Watched w =
          watched(problem, RunOptions::Iterate::kPolyak, constant_step(0.004), period, steps);
      for (std::size_t k = 1; k < w.at.size(); ++k) {
        std::vector<double> average(w.x[k].size());
        int count = 0;
        for (std::size_t j = 1; j <= k; ++j)
          if (w.at[j] > steps / 2) {
            ++count;
            for (std::size_t i = 0; i < average.size(); ++i) average[i] += w.x[j][i];
          }
        for (double& v : average) v /= count;
        const double want = mse_of(count == 0 ? w.x[k] : average, problem);  // before: the last
        EXPECT_NEAR(w.curve[k - 1], want, 1e-12 * want) << "step " << w.at[k];
      }
    }
}

TEST(RunIterate, AverageSurvivesSaving) {
  const Gaussian problem({.agents = 70, .dim = 2}, 4, 0);
  const std::unique_ptr<Team> team = serial_team();
  for (RunOptions::Iterate iterate :
       {RunOptions::Iterate::kWeighted, RunOptions::Iterate::kPolyak}) {
    RunOptions o = options(12);
    o.iterate = iterate;
    Loop whole(problem, methods({"affpcl", "fedavg"}), o, *team);
    whole.advance(12);
    for (std::int64_t at : {3, 8}) {
      Loop first(problem, methods({"affpcl", "fedavg"}), o, *team),
          second(problem, methods({"affpcl", "fedavg"}), o, *team);
      first.advance(at);
      second.load(first.save());
      second.advance(12);
      EXPECT_TRUE(same_bits(pictures(second, problem, 2), pictures(whole, problem, 2)));
    }
  }
}

// ---- divergence ----

TEST(RunDivergence, IsFlaggedAndLeavesTheOthersAlone) {
  const Gaussian problem({.agents = 300, .dim = 3}, 5, 0);
  const std::unique_ptr<Team> team = serial_team();
  for (double alpha : {1.0, 1e30, 1e300}) {  // slowly, at once, and past what a number can hold
    std::vector<Method> both = methods({"affpcl"}, 0.002);
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

// The scale is how far the start is from the solution, or how long the solution is: a system whose
// solution is zero, started elsewhere, converges and must not be given up.
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

// ---- refusals ----

// Rounds of 7 samples as steps of 3, 3 and 1: each step takes the mean of its own.
TEST(RunSamples, UnevenStepsAverageWhatTheyTake) {
  const Gaussian problem({.agents = 5, .dim = 2}, 4, 0);
  const std::unique_ptr<Team> team = serial_team();
  const RunOptions o = options(6);
  std::vector<Method> methods;
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
      problem.apply(lanes, s, x, Ax);
      problem.objective(lanes, s, b);
      for (std::size_t k = 0; k < g.size(); ++k) g[k] += (Ax.p[k] - b.p[k]) / count;
    }
    for (std::size_t k = 0; k < g.size(); ++k) x.p[k] -= 0.01 * g[k];
  }
  for (std::int64_t i = 0; i < 5; ++i)
    for (int r = 0; r < 2; ++r) EXPECT_NEAR(run.solution(0, i, r), x.row(r)[i], 1e-14);
}

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
    std::vector<Method> m;
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
  void apply(Lanes, In, In x, Out Ax) const override { copy(x, Ax); }
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
        std::vector<Method> two = methods({"independent"}, 0.5, period);
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
