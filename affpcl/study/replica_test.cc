#include "affpcl/study/replica.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"

namespace affpcl {
namespace {

Spec spec(const std::vector<std::string>& set = {}) {
  return read_study(R"([problem]
kind = "gaussian"
agents = 6
dim = 2
[run]
steps = 6
seed = 3
step_size = 0.01
curve_agents = [-1, 0, -1]
[[method]]
kind = "fedavg"
samples = 70
batch = 32
step_size = 0.02
[[method]]
kind = "independent"
)",
                    "my.toml", set)
      .settings.front()
      .spec;
}

std::vector<Record> records(const Spec& s, std::uint32_t number) {
  const auto team = serial_team();
  const Replica replica = make_replica(s, number, *team);
  replica.run->advance(s.run.steps);
  return replica.run->finish();
}

StepSizes constant(double value) {
  StepSizes step;
  step.agent.schedule.value = step.central.schedule.value = value;
  return step;
}

// The same run from what spec() says, without Spec: 70 samples in steps of 32, 32 and 6.
std::vector<Record> from_the_text(int last) {
  const Gaussian problem({.agents = 6, .dim = 2}, 3, 4);
  std::vector<RunMethod> methods;
  methods.push_back({"fedavg", method_kind("fedavg").make({}), 3, 32, constant(0.02), last});
  methods.push_back({"independent", method_kind("independent").make({}), 1, 1, constant(0.01)});
  RunOptions o;
  o.seed = 3;
  o.replicate = 4;
  o.steps = o.tail = 6;
  o.curve_agents = {0, 5};
  const auto team = serial_team();
  affpcl::Run run(problem, std::move(methods), o, *team);
  run.advance(6);
  return run.finish();
}

TEST(Replica, IsWhatTheSpecSays) {
  const std::vector<Record> made = records(spec(), 4), want = from_the_text(6);
  ASSERT_EQ(made.size(), 2u);
  for (std::size_t m = 0; m < 2; ++m) {
    EXPECT_EQ(made[m].steps, want[m].steps);
    EXPECT_EQ(made[m].curve, want[m].curve);
    EXPECT_EQ(made[m].agents, want[m].agents);
    EXPECT_EQ(made[m].agent_mse, want[m].agent_mse);
  }
  EXPECT_NE(made[0].curve, from_the_text(32)[0].curve);
}

TEST(Replica, RedrawsTheSystemOrOnlySamples) {
  const auto x = [](const std::string& redraw, std::uint32_t number) {
    const auto problem = make_problem(spec({"problem.redraw=" + redraw}), number);
    return problem->truth()->xc;
  };
  EXPECT_NE(x("system", 0), x("system", 1));
  EXPECT_EQ(x("samples", 0), x("samples", 1));
  const Spec samples = spec({"problem.redraw=samples"});
  EXPECT_NE(records(samples, 0)[1].curve, records(samples, 1)[1].curve);
}

std::string refusal(const Spec& s) {
  const auto team = serial_team();
  try {
    make_replica(s, 0, *team);
  } catch (const BadInput& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Replica, RefusesWhatDoesNotFit) {
  EXPECT_NE(refusal(spec({"problem.agents=3000000000"})).find("GB of memory"), std::string::npos);
  Spec seven = spec();
  seven.run.curve_agents = {0, 6};
  EXPECT_EQ(refusal(seven), "run.curve_agents holds 6, but there are 6 agents");
}

}  // namespace
}  // namespace affpcl
