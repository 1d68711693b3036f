// Methods that are the same method in a special case: runs on heterogeneous agents, compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "affpcl/method/method.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/run.h"

namespace affpcl::identities {

struct Case {
  std::string kind;
  std::map<std::string, Value> given = {};
  int period = 1;
  int batch = 1;
};

inline constexpr int kSteps = 40;

inline RunMethod make(const Case& c) {
  const MethodKind& kind = method_kind(c.kind);
  RunMethod method;
  method.name = c.kind;
  method.method = kind.make(Values(kind.params, c.given, "method"));
  method.period = c.period;
  method.batch = c.batch;
  return method;
}

// All iterates of one method at the end of the run, agent by agent.
inline std::vector<double> solutions(const Problem& problem, const Case& c,
                                     std::int64_t steps = kSteps) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = steps;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(steps);
  std::vector<double> all;
  for (std::int64_t i = 0; i < problem.shape().agents; ++i)
    for (int r = 0; r < problem.shape().d; ++r) all.push_back(run.solution(0, i, r));
  return all;
}

// The method's central model at the end of the run.
inline std::vector<double> central(const Case& c, const Problem& problem) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = kSteps;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(kSteps);
  const In w = run.central_x(0);
  return {w.p, w.p + w.rows};
}

inline void expect_same(const Case& a, const Case& b) {
  const Gaussian gaussian({.agents = 70, .dim = 4}, 3, 0);
  const Tabular tabular(Tabular::generate({.agents = 9}, 5, 0), Tabular::Coe::kAuto);
  for (const Problem* problem :
       {static_cast<const Problem*>(&gaussian), static_cast<const Problem*>(&tabular)}) {
    const std::vector<double> x = solutions(*problem, a), y = solutions(*problem, b);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], y[i], 1e-12 * std::max(1.0, std::abs(x[i]))) << i;
  }
}

inline void expect_different(const Case& a, const Case& b) {
  const Gaussian gaussian({.agents = 20, .dim = 4}, 3, 0);
  const std::vector<double> x = solutions(gaussian, a), y = solutions(gaussian, b);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  EXPECT_GT(largest, 1e-6);
}

}  // namespace affpcl::identities
