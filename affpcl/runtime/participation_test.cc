// Agents that are absent from rounds: who is there, what stays as it is, and what the mean is over.
#include <gtest/gtest.h>

#include <set>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/rows.h"
#include "affpcl/runtime/harness_test.h"

namespace affpcl {
namespace {

using Agents1 = std::set<std::int64_t>;

std::vector<std::vector<double>> all_solutions(const Loop& run, std::size_t method,
                                               std::int64_t n) {
  std::vector<std::vector<double>> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.emplace_back();
    for (int r = 0; r < run.dimension(); ++r) all.back().push_back(run.solution(method, i, r));
  }
  return all;
}

// The agents whose solution moved, round by round.
std::vector<Agents1> movers(const Problem& problem, std::vector<RunMethod> list, RunOptions o,
                            std::size_t method) {
  const std::unique_ptr<Team> team = serial_team();
  const std::int64_t n = problem.shape().agents;
  Loop run(problem, std::move(list), std::move(o), *team);
  std::vector<Agents1> all;
  auto before = all_solutions(run, method, n);
  while (!run.done()) {
    run.advance(run.step() + 1);
    auto now = all_solutions(run, method, n);
    all.emplace_back();
    for (std::int64_t i = 0; i < n; ++i)
      if (now[static_cast<std::size_t>(i)] != before[static_cast<std::size_t>(i)])
        all.back().insert(i);
    before = std::move(now);
  }
  return all;
}

TEST(Participation, ExactlySoManyAgentsMoveAndTheyAreTheSameForAllMethods) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  RunOptions o = options(20);
  for (const auto& [share, count] : {std::pair{0.3, 21u}, {0.001, 1u}, {0.107, 7u}}) {
    o.participation = share;
    const auto kinds = methods({"independent", "affpcl", "ditto"});
    std::vector<Agents1> first;
    for (std::size_t m = 0; m < kinds.size(); ++m) {
      const auto moved = movers(problem, methods({"independent", "affpcl", "ditto"}), o, m);
      for (const Agents1& round : moved) EXPECT_EQ(round.size(), count) << m;
      if (m == 0) first = moved;
      EXPECT_EQ(moved, first) << m;
    }
    if (count > 1) {
      EXPECT_NE(first[0], first[1]);
    }
    o.replicate = 1;
    EXPECT_NE(movers(problem, methods({"independent"}), o, 0), first);
    o.replicate = 0;
    o.seed = 2;
    EXPECT_NE(movers(problem, methods({"independent"}), o, 0), first);
    o.seed = 1;
  }
}

TEST(Participation, AScheduleSaysWhoTakesPartAndBeginsAnew) {
  const Gaussian problem({.agents = 5, .dim = 3}, 1, 0);
  RunOptions o = options(5);
  o.schedule = {{0, 3}, {1, 2, 4}};
  const std::vector<Agents1> want = {{0, 3}, {1, 2, 4}, {0, 3}, {1, 2, 4}, {0, 3}};
  EXPECT_EQ(movers(problem, methods({"independent"}), o, 0), want);
  EXPECT_EQ(movers(problem, methods({"affpcl"}), o, 0), want);
}

// With a period of 3 an agent is there for all three steps of a round, or for none.
TEST(Participation, IsByRound) {
  const Gaussian problem({.agents = 5, .dim = 3}, 1, 0);
  RunOptions o = options(9);
  o.schedule = {{0, 3}, {1}, {2, 4}};
  const std::unique_ptr<Team> team = serial_team();
  Loop alone(problem, methods({"independent"}), options(9), *team),
      run(problem, methods({"independent"}, 0.005, 3), o, *team);
  alone.advance(3), run.advance(3);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(run.solution(0, 0, r), alone.solution(0, 0, r));
    EXPECT_EQ(run.solution(0, 1, r), 0);
  }
}

TEST(Participation, TheShareOfRoundsIsReported) {
  const Gaussian problem({.agents = 10, .dim = 3}, 1, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto share = [&](const RunOptions& o, int period) {
    Loop run(problem, methods({"affpcl"}, 0.005, period), o, *team);
    run.advance(o.steps);
    return run.finish()[0].present;
  };
  RunOptions o = options(9);
  EXPECT_EQ(share(o, 1), 1);
  o.participation = 0.34;
  EXPECT_EQ(share(o, 1), 0.3);
  o.participation = 1;
  o.schedule = {{0, 1}, {0, 1, 2, 3}};
  EXPECT_NEAR(share(o, 1), (5 * .2 + 4 * .4) / 9, 1e-15);
  EXPECT_NEAR(share(o, 3), (2 * .2 + .4) / 3, 1e-15);
}

TEST(Participation, AScheduleOfAllAgentsIsNoSchedule) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  RunOptions all = options(12);
  all.schedule.emplace_back();
  for (std::int64_t i = 0; i < 70; ++i) all.schedule[0].push_back(i);
  const std::unique_ptr<Team> team = serial_team();
  const std::size_t count = every_method(0.005).size();
  const auto seen = [&](const RunOptions& o) {
    Loop run(problem, every_method(0.005), o, *team);
    run.advance(12);
    return pictures(run, problem, count);
  };
  EXPECT_TRUE(same_bits(seen(all), seen(options(12))));
}

// Agents that are never there are not in the problem: those present end where they end without the
// others. Not so for methods that look at all agents' true solutions, or keep a mean over all
// agents, absent ones too (SCAFFOLD's c).
TEST(Participation, WhoIsNeverThereDoesNotCount) {
  const int n = 9;
  FiniteSystem whole = Tabular::generate({.agents = n, .dim = 2, .states = 4}, 5, 0);
  whole.steps = 42;
  for (std::int64_t i = 0; i < n * whole.steps; ++i)
    whole.order.push_back(static_cast<int>(i * i % 7 % whole.states));
  const std::vector<std::int64_t> present = {1, 4, 5, 8};
  FiniteSystem part = whole;
  part.agents = 4;
  part.mu.clear(), part.theta.clear(), part.order.clear();
  const auto take = [&](const auto& from, auto& into, std::int64_t width) {
    for (const std::int64_t i : present)
      into.insert(into.end(), from.begin() + i * width, from.begin() + (i + 1) * width);
  };
  take(whole.mu, part.mu, whole.states);
  take(whole.theta, part.theta, whole.k);
  take(whole.order, part.order, whole.steps);
  const Tabular a(whole, Tabular::Coe::kAuto), b(part, Tabular::Coe::kAuto);
  const std::unique_ptr<Team> team = serial_team();
  for (const MethodKind& kind : method_kinds()) {
    if (kind.name == "all_for_all" || kind.name == "all_for_one" || kind.name == "scaffold")
      continue;
    for (const auto& [period, batch] : {std::pair{1, 1}, {3, 2}}) {
      SCOPED_TRACE(::testing::Message() << kind.name << ", period " << period);
      const auto list = [&] {
        std::vector<RunMethod> all;
        all.push_back(make_method(kind, constant_step(0.02), period, batch));
        return all;
      };
      RunOptions o = options(21);
      Loop alone(b, list(), o, *team);
      o.schedule = {present};
      Loop together(a, list(), o, *team);
      alone.advance(21), together.advance(21);
      for (std::size_t i = 0; i < present.size(); ++i)
        for (int r = 0; r < 2; ++r)
          EXPECT_NEAR(together.solution(0, present[i], r),
                      alone.solution(0, static_cast<std::int64_t>(i), r), 1e-12);
    }
  }
}

// SCAFFOLD's c is the mean of all c_i: where all agents have the same state and samples a fixed
// direction each, c_i is that direction once it was there.
TEST(Participation, ScaffoldKeepsTheMeanOfAllControlVariates) {
  FiniteSystem f;
  f.agents = 4, f.states = 4, f.d = 1;
  f.A = {1, 1, 1, 1};
  f.mu = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  for (int i = 0; i < 4; ++i)
    for (int s = 0; s < 4; ++s) f.b.push_back(i + 1);
  const Tabular problem(f, Tabular::Coe::kAuto);
  RunOptions o = options(1);
  o.schedule = {{1, 2}};
  const std::unique_ptr<Team> team = serial_team();
  std::vector<RunMethod> list;
  list.push_back(make_method(method_kind("scaffold"), constant_step(0.5)));
  Loop run(problem, std::move(list), o, *team);
  run.advance(1);
  const RunState state = run.save();
  for (const RunState::Field& field : state.fields)
    if (field.name == "scaffold.centre") {
      ASSERT_EQ(field.numbers.size(), 2);
      EXPECT_NEAR(field.numbers[0], 0.5 * 2.5, 1e-15);         // x: the mean of those present
      EXPECT_NEAR(field.numbers[1], -(2.0 + 3.0) / 4, 1e-15);  // c: of all
      return;
    }
  FAIL() << "no centre was saved";
}

// A Markov chain stands still while its agent is away.
TEST(Participation, AbsentAgentsDrawNothing) {
  const ProblemKind& td = problem_kind("td");
  const auto problem = conformance::make_problem(td, 5, {{"sampling", std::string("markov")}});
  RunOptions o = options(6);
  o.schedule = {{0}, {0, 1}};
  const std::unique_ptr<Team> team = serial_team();
  const auto worlds = [&](Loop& run) {
    for (const RunState::Field& field : run.save().fields)
      if (field.name == "world0") return field.numbers;
    return std::vector<double>{};
  };
  Loop run(*problem, methods({"independent"}), o, *team);
  std::vector<std::vector<double>> seen;
  for (int t = 1; t <= 6; ++t) {
    run.advance(t);
    seen.push_back(worlds(run));
  }
  ASSERT_FALSE(seen[0].empty());
  bool first = false, second = false;
  for (std::size_t t = 1; t < 6; ++t) {
    first |= seen[t][0] != seen[t - 1][0];
    second |= seen[t][1] != seen[t - 1][1];
    EXPECT_EQ(seen[t][2], seen[0][2]);
    if (t % 2 == 0) {
      EXPECT_EQ(seen[t][1], seen[t - 1][1]) << t;
    }
  }
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(Participation, RefusesWhatMakesNoSense) {
  const Gaussian problem({.agents = 5, .dim = 3}, 1, 0);
  const std::unique_ptr<Team> team = serial_team();
  const auto refusal = [&](const RunOptions& o, const conformance::Given& given = {}) {
    try {
      std::vector<RunMethod> list;
      list.push_back(make_method(method_kind("affpcl"), constant_step(0.01), 1, 1, given));
      Loop run(problem, std::move(list), o, *team);
    } catch (const BadInput& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  RunOptions o = options(5);
  o.participation = 0.5;
  EXPECT_EQ(refusal(o), "");
  EXPECT_NE(refusal(o, {{"central", std::string("average")}}).find("all agents in every round"),
            std::string::npos);
  o.participation = 1;
  o.schedule = {{0}, {}};
  EXPECT_NE(refusal(o).find("no agent in round 2"), std::string::npos);
  o.schedule = {{0}, {5}};
  EXPECT_NE(refusal(o).find("agent 5 in round 2"), std::string::npos);
}

}  // namespace
}  // namespace affpcl
