// Methods that are the same method in a special case, to 1e-12 over whole runs with heterogeneous
// agents.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "affpcl/method/method.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

struct Case {
  std::string kind;
  std::map<std::string, Value> given = {};
  int period = 1;
  int batch = 1;
};

constexpr int kSteps = 40;

RunMethod make(const Case& c) {
  const MethodKind& kind = method_kind(c.kind);
  RunMethod method;
  method.name = c.kind;
  method.method = kind.make(Values(kind.params, c.given, "method"));
  method.period = c.period;
  method.batch = c.batch;
  return method;
}

// All iterates of one method at the end of the run, agent by agent.
std::vector<double> solutions(const Problem& problem, const Case& c) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = kSteps;
  const auto team = serial_team();
  affpcl::Run run(problem, std::move(methods), options, *team);
  run.advance(kSteps);
  std::vector<double> all;
  for (std::int64_t i = 0; i < problem.shape().agents; ++i)
    for (int r = 0; r < problem.shape().d; ++r) all.push_back(run.solution(0, i, r));
  return all;
}

void expect_same(const Case& a, const Case& b) {
  const Gaussian gaussian({.agents = 70, .dim = 4}, 3, 0);
  const Tabular tabular(Tabular::generate({.agents = 9}, 5, 0), Tabular::Coe::kAuto);
  for (const Problem* problem :
       {static_cast<const Problem*>(&gaussian), static_cast<const Problem*>(&tabular)}) {
    const std::vector<double> x = solutions(*problem, a), y = solutions(*problem, b);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], y[i], 1e-12 * std::max(1.0, std::abs(x[i]))) << i;
  }
}

void expect_different(const Case& a, const Case& b) {
  const Gaussian gaussian({.agents = 20, .dim = 4}, 3, 0);
  const std::vector<double> x = solutions(gaussian, a), y = solutions(gaussian, b);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  EXPECT_GT(largest, 1e-6);
}

TEST(IdentityMethods, DittoWithoutPullIsIndependent) {
  expect_same({"ditto", {{"lambda", 0.0}}}, {"independent"});
  expect_same({"ditto", {{"lambda", 0.0}}, 5}, {"independent"});
  expect_different({"ditto"}, {"independent"});
}

TEST(IdentityMethods, PFedMeWithoutPullIsIndependent) {
  expect_same({"pfedme", {{"lambda", 0.0}}}, {"independent"});
  expect_same({"pfedme", {{"lambda", 0.0}}, 4, 2}, {"independent", {}, 1, 2});
  expect_different({"pfedme"}, {"independent"});
}

TEST(IdentityMethods, IndependentDoesNotCommunicate) {
  expect_same({"independent", {}, 7}, {"independent"});
}

TEST(IdentityMethods, OneClusterIsFedAvg) {
  const std::map<std::string, Value> one = {{"clusters", std::int64_t{1}}, {"start_scale", 0.0}};
  for (int period : {1, 5}) expect_same({"ifca", one, period}, {"fedavg", {}, period});
  std::map<std::string, Value> published = one;
  published["form"] = "published";
  expect_same({"ifca", published}, {"fedavg"});
  expect_different({"ifca"}, {"fedavg"});
}

TEST(IdentityMethods, FineTuneSwitchingAtTheEndsIsFedAvgOrIndependent) {
  for (int period : {1, 5}) {
    expect_same({"fine_tune", {{"together", 1.0}}, period}, {"fedavg", {}, period});
    expect_same({"fine_tune", {{"together", 0.0}}, period}, {"independent"});
  }
  expect_different({"fine_tune"}, {"fedavg"});
  expect_different({"fine_tune"}, {"independent"});
}

TEST(IdentityMethods, ScaffoldWithOneLocalStepIsFedAvg) {
  expect_same({"scaffold"}, {"fedavg"});
  expect_same({"scaffold", {}, 1, 3}, {"fedavg", {}, 1, 3});
  expect_different({"scaffold", {}, 5}, {"fedavg", {}, 5});
}

TEST(IdentityMethods, PublishedFormsAreOtherMethods) {
  for (const char* kind : {"ditto", "pfedme", "ifca"})
    expect_different({kind}, {kind, {{"form", "published"}}});
}

// pFedMe as published, one proximal gradient step and one local step: theta = w - alpha g(w), w
// moves by -outer lambda alpha mean g(w); with outer lambda = 1 that is FedAvg's w, and theta is
// one step from it.
TEST(IdentityMethods, PublishedPFedMeByHand) {
  const Gaussian problem({.agents = 6, .dim = 3}, 3, 0);
  const std::map<std::string, Value> given = {
      {"form", "published"}, {"inner", std::int64_t{1}}, {"lambda", 4.0}, {"outer", 0.25}};
  std::vector<RunMethod> methods;
  methods.push_back(make({"pfedme", given}));
  methods.push_back(make({"fedavg"}));
  RunOptions options;
  options.steps = kSteps;
  const auto team = serial_team();
  affpcl::Run run(problem, std::move(methods), options, *team);
  run.advance(kSteps);
  for (int r = 0; r < 3; ++r) EXPECT_NEAR(run.central_x(0).p[r], run.central_x(1).p[r], 1e-12);
}

}  // namespace
}  // namespace affpcl
