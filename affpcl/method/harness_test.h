// Methods that are the same method in a special case: runs on heterogeneous agents, compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "affpcl/math/dense.h"
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
  double step = 0.01;          // alpha^i
  double central_step = 0.01;  // alpha^c
};

inline constexpr int kSteps = 40;

inline RunMethod make(const Case& c) {
  const MethodKind& kind = method_kind(c.kind);
  RunMethod method;
  method.name = c.kind;
  method.method = kind.make(Values(kind.params, c.given, "method"));
  method.period = c.period;
  method.batch = c.batch;
  method.step.agent.schedule.value = c.step;
  method.step.central.schedule.value = c.central_step;
  return method;
}

// Agents whose systems have no noise: agent i is always in state i, g_i(x) = A_i x - b_i.
inline Tabular fixed_systems(const std::vector<Matrix>& A, const std::vector<Vector>& b) {
  FiniteSystem f;
  const std::size_t n = A.size(), d = b[0].size();
  f.agents = static_cast<std::int64_t>(n);
  f.states = static_cast<int>(n);
  f.d = static_cast<int>(d);
  for (std::size_t i = 0; i < n; ++i) {
    f.A.insert(f.A.end(), A[i].all().begin(), A[i].all().end());
    for (std::size_t s = 0; s < n; ++s) {
      f.mu.push_back(i == s ? 1 : 0);
      f.b.insert(f.b.end(), b[i].begin(), b[i].end());
    }
  }
  return Tabular(f, Tabular::Coe::kAuto);
}

// Three of them, symmetric and unlike each other.
struct Three {
  std::vector<Matrix> A;
  std::vector<Vector> b = {{1, 0}, {0, 2}, {-1, 1}};
  Three() : A(3, Matrix(2, 2)) {
    A[0].all() = {1, 0.2, 0.2, 0.5};
    A[1].all() = {0.6, -0.1, -0.1, 1.2};
    A[2].all() = {0.8, 0.3, 0.3, 0.9};
  }
  Tabular problem() const { return fixed_systems(A, b); }
  Vector solution(std::size_t i) const { return solve(A[i], b[i]); }
};

// All iterates of one method at the end of the run, agent by agent.
inline std::vector<double> solutions(const Problem& problem, const Case& c,
                                     std::int64_t steps = kSteps, std::uint64_t seed = 1) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = steps;
  options.seed = seed;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(steps);
  std::vector<double> all;
  for (std::int64_t i = 0; i < problem.shape().agents; ++i)
    for (int r = 0; r < problem.shape().d; ++r) all.push_back(run.solution(0, i, r));
  return all;
}

// The method's central model at the end of the run.
inline std::vector<double> central(const Case& c, const Problem& problem,
                                   std::int64_t steps = kSteps) {
  std::vector<RunMethod> methods;
  methods.push_back(make(c));
  RunOptions options;
  options.steps = steps;
  const auto team = serial_team();
  Run run(problem, std::move(methods), options, *team);
  run.advance(steps);
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
