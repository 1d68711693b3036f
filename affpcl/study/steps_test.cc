// From the spec's step-size rule to every module's and agent's steps.
#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/study/spec.h"

namespace affpcl {
namespace {

Spec spec_with(const std::string& run, const std::string& method = "") {
  return read_study("[problem]\nkind = \"gaussian\"\n[run]\nsteps = 50\n" + run +
                        "\n[[method]]\nkind = \"affpcl\"\n" + method + "\n",
                    "x")
      .settings.front()
      .spec;
}
StepSizes steps(const Spec& spec, const Problem& problem) {
  return step_sizes(spec, spec.methods.front(), problem);
}
std::vector<double> agent_steps(const StepSizes& s, std::int64_t t, std::int64_t n) {
  Scratch scratch;
  const In row = s.agents(t, Lanes{0, static_cast<int>(n)}, scratch);
  std::vector<double> all;
  for (int l = 0; l < n; ++l) all.push_back(row.at(0, l));
  return all;
}

const Gaussian& gaussian() {
  static const Gaussian kProblem({.agents = 6, .dim = 3, .delta_env = 0.5}, 3, 0);
  return kProblem;
}
const Tabular& tabular() {
  static const Tabular kProblem(Tabular::generate({.agents = 6}, 3, 0), Tabular::Coe::kAuto);
  return kProblem;
}

TEST(StepRules, ConstantIsTheSameForAll) {
  const StepSizes s = steps(spec_with("step_size = 0.03"), gaussian());
  EXPECT_TRUE(s.common());
  for (std::int64_t t : {0, 49}) {
    EXPECT_EQ(agent_steps(s, t, 6), std::vector<double>(6, 0.03));
    EXPECT_EQ(s.central.at(t), 0.03);
    EXPECT_EQ(s.objective.at(t), 0.03);
    EXPECT_EQ(s.ratio.at(t), 0.03);
  }
}

TEST(StepRules, ModulesMayHaveTheirOwn) {
  const StepSizes s = steps(spec_with("step_size = 0.03\nstep_size_central = 0.1\n"
                                      "step_size_objective = 0.2\nstep_size_ratio = 0.3"),
                            gaussian());
  EXPECT_EQ(agent_steps(s, 0, 6).front(), 0.03);
  EXPECT_EQ(s.central.at(0), 0.1);
  EXPECT_EQ(s.objective.at(0), 0.2);
  EXPECT_EQ(s.ratio.at(0), 0.3);
}

TEST(StepRules, AMethodMayHaveItsOwn) {
  const StepSizes s = steps(spec_with("step_size = 0.03", "step_size = 0.05"), gaussian());
  EXPECT_EQ(agent_steps(s, 0, 6).front(), 0.05);
  EXPECT_EQ(s.central.at(0), 0.05);
}

// alpha^i lambda^i = alpha^c lambda^c = alpha^b lambda^b = alpha_t.
TEST(StepRules, RelativeSchedulesDivideByEachModulesLambda) {
  for (const Problem* p :
       {static_cast<const Problem*>(&gaussian()), static_cast<const Problem*>(&tabular())}) {
    const Monotonicity lambda = monotonicity(*p);
    const StepSizes s = steps(spec_with("step_size = {schedule = \"log-constant\"}"), *p);
    const double alpha = std::log(50.0) / 50;
    EXPECT_FALSE(s.common());
    const std::vector<double> own = agent_steps(s, 7, 6);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(own[i] * lambda.agents[i], alpha, 1e-14);
    EXPECT_NEAR(s.central.at(7) * lambda.central, alpha, 1e-14);
    EXPECT_NEAR(s.objective.at(7) * lambda.objective, alpha, 1e-14);
  }
}

TEST(StepRules, PerMinUsesTheSmallestLambdaForAll) {
  const Monotonicity lambda = monotonicity(gaussian());
  double least = std::min(lambda.central, lambda.objective);
  for (double l : lambda.agents) least = std::min(least, l);
  const StepSizes s =
      steps(spec_with("step_size = {schedule = \"log-constant\", per = \"min\"}"), gaussian());
  EXPECT_TRUE(s.common());
  const double want = std::log(50.0) / 50 / least;
  EXPECT_NEAR(agent_steps(s, 0, 6).front(), want, 1e-14);
  EXPECT_NEAR(s.central.at(0), want, 1e-14);
  EXPECT_NEAR(s.objective.at(0), want, 1e-14);
}

TEST(StepRules, AModulesRelativeScheduleUsesItsLambdaBesideAConstantStep) {
  const Monotonicity lambda = monotonicity(gaussian());
  const StepSizes s = steps(
      spec_with("step_size = 0.03\nstep_size_central = {schedule = \"log-constant\"}"), gaussian());
  EXPECT_EQ(agent_steps(s, 0, 6), std::vector<double>(6, 0.03));
  EXPECT_NEAR(s.central.at(0) * lambda.central, std::log(50.0) / 50, 1e-14);
  EXPECT_EQ(s.objective.at(0), 0.03);
}

// The corollaries' bounds on the first step: lambda^i / (40 G_A^2), lambda^c / (8 G_A^2),
// lambda^b / (4 max(1, G_Phi^2)); t0 is the least whole number that keeps all of them.
TEST(StepRules, DiminishingStartsBelowTheCorollariesBoundsAndNoLower) {
  for (const Problem* p :
       {static_cast<const Problem*>(&gaussian()), static_cast<const Problem*>(&tabular())})
    for (const char* per : {"agent", "min"}) {
      const Monotonicity lambda = monotonicity(*p);
      const double GA = p->means()->G_A(), GPhi = p->means()->G_Phi();
      const double GA2 = GA * GA, GPhi2 = std::max(1.0, GPhi * GPhi);
      const StepSizes s = steps(
          spec_with("step_size = {schedule = \"diminishing\", per = \"" + std::string(per) + "\"}"),
          *p);
      const double t0 = s.agent.schedule.t0;
      EXPECT_EQ(s.central.schedule.t0, t0);
      EXPECT_EQ(s.objective.schedule.t0, t0);
      EXPECT_EQ(t0, std::floor(t0));
      double tightest = 0;  // first step over its bound, the largest of all
      const std::vector<double> own = agent_steps(s, 0, 6);
      for (std::size_t i = 0; i < 6; ++i)
        tightest = std::max(tightest, own[i] * 40 * GA2 / lambda.agents[i]);
      tightest = std::max(tightest, s.central.at(0) * 8 * GA2 / lambda.central);
      tightest = std::max(tightest, s.objective.at(0) * 4 * GPhi2 / lambda.objective);
      EXPECT_LE(tightest, 1 + 1e-12);
      EXPECT_GT(tightest * (t0 + 1) / t0, 1) << "t0 - 1 would do as well";
      // 4 / (t + t0 + 1), times one factor.
      EXPECT_NEAR(s.central.at(9) / s.central.at(0), (t0 + 1) / (t0 + 10), 1e-14);
    }
}

TEST(StepRules, AGivenT0IsTaken) {
  const StepSizes s =
      steps(spec_with("step_size = {schedule = \"diminishing\", t0 = 3}"), gaussian());
  const Monotonicity lambda = monotonicity(gaussian());
  EXPECT_NEAR(s.central.at(0) * lambda.central, 1, 1e-14);
  EXPECT_NEAR(s.central.at(4) * lambda.central, 0.5, 1e-14);
}

TEST(StepRules, ScalesOfTheStepAreFiniteForEveryModule) {
  for (const char* schedule : {"log-constant", "diminishing"})
    for (const char* key :
         {"step_size", "step_size_central", "step_size_objective", "step_size_ratio"}) {
      const StepSizes s =
          steps(spec_with(std::string(key) + " = {schedule = \"" + schedule + "\"}"), gaussian());
      for (const StepSizes::Module* m : {&s.central, &s.objective, &s.ratio}) {
        EXPECT_GT(m->at(0), 0) << key << ' ' << schedule;
        EXPECT_LT(m->at(0), 4) << key << ' ' << schedule;
      }
      EXPECT_GT(agent_steps(s, 0, 6).front(), 0);
    }
}

TEST(StepRules, NeedALambdaAboveZero) {
  FiniteSystem f;  // A = -1: outside eq:sys
  f.agents = 1, f.states = 1, f.d = 1;
  f.A = {-1}, f.mu = {1}, f.b = {1};
  const Tabular bad(f, Tabular::Coe::kAuto);
  EXPECT_THROW(steps(spec_with("step_size = {schedule = \"log-constant\"}"), bad), BadInput);
  EXPECT_THROW(steps(spec_with("step_size = {schedule = \"diminishing\"}"), bad), BadInput);
  EXPECT_NO_THROW(steps(spec_with("step_size = 0.1"), bad));
}

TEST(StepRules, WorkWithoutPhi) {
  FiniteSystem f;
  f.agents = 1, f.states = 1, f.d = 1;
  f.A = {2}, f.mu = {1}, f.b = {1};
  const Tabular plain(f, Tabular::Coe::kAuto);
  const StepSizes s = steps(spec_with("step_size = {schedule = \"diminishing\"}"), plain);
  EXPECT_EQ(s.agent.schedule.t0, 4 * 40 * 4.0 / (2 * 2) - 1);  // 40 G^2 / lambda^2 = 40
  EXPECT_NEAR(agent_steps(s, 0, 1).front(), 2.0 / (40 * 4), 1e-15);
}

// theta -= alpha (100 theta - b) diverges from alpha = .02 on.
TEST(StepRules, ACentralStepThatDivergesIsBounded) {
  FiniteSystem f;
  f.agents = 2, f.states = 1, f.d = 1, f.k = 1;
  f.A = {1}, f.Phi = {100}, f.mu = {1, 1}, f.theta = {1, 2};
  const Tabular large(f, Tabular::Coe::kResidual);
  const StepSizes s = steps(spec_with("step_size = 0.05"), large);
  EXPECT_NEAR(s.objective.at(0), 0.01, 1e-12);
  EXPECT_EQ(s.central.at(0), 0.05);
  EXPECT_EQ(agent_steps(s, 0, 2).front(), 0.05);
  EXPECT_EQ(steps(spec_with("step_size = 0.015"), large).objective.at(0), 0.015);
  const Spec stated = spec_with("step_size = 0.05\nstep_size_objective = 0.05");
  EXPECT_EQ(steps(stated, large).objective.at(0), 0.05);
}

}  // namespace
}  // namespace affpcl
