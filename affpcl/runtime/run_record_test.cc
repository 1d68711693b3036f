#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/harness_test.h"

namespace affpcl {
namespace {

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
  std::vector<RunMethod> two = methods({"independent"});
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
  std::vector<RunMethod> all;
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

}  // namespace
}  // namespace affpcl
