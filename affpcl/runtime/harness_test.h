// What tests of runs share: methods by name, short runs, what a run holds and how wrong it is.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "affpcl/runtime/run.h"
#include "tests/conformance.h"

namespace affpcl {

using conformance::constant_step;
using conformance::make_method;
using conformance::picture;
using conformance::same_bits;
using Loop = Run;  // inside a TEST, Run is GoogleTest's own

inline std::vector<RunMethod> methods(const std::vector<std::string>& kinds, double alpha = 0.005,
                                      int period = 1, int batch = 1) {
  std::vector<RunMethod> all;
  for (const std::string& kind : kinds)
    all.push_back(make_method(method_kind(kind), constant_step(alpha), period, batch));
  return all;
}

// All methods of the catalogue with periods 1, 3 and 7 and batches of 1 and 2, in one run.
inline std::vector<RunMethod> every_method(double alpha) {
  std::vector<RunMethod> all;
  const std::pair<int, int> shapes[] = {{1, 1}, {3, 1}, {7, 2}};
  for (const MethodKind& kind : method_kinds())
    for (const auto& [period, batch] : shapes)
      all.push_back(make_method(kind, constant_step(alpha), period, batch));
  return all;
}

inline std::vector<double> pictures(Loop& run, const Problem& problem, std::size_t count) {
  std::vector<double> all;
  for (std::size_t m = 0; m < count; ++m) {
    const std::vector<double> one = picture(run, problem, m);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline RunOptions options(std::int64_t steps) {
  RunOptions o;
  o.steps = steps;
  o.tail = std::min<std::int64_t>(4, steps);
  return o;
}

inline double squared(double x) { return x * x; }

// Mean squared error of the run's current iterates, straight from the truth.
inline double mse(const Loop& run, const Problem& problem, std::size_t method) {
  double sum = 0;
  const std::int64_t n = problem.shape().agents;
  const int d = problem.shape().d;
  for (std::int64_t i = 0; i < n; ++i)
    for (int r = 0; r < d; ++r)
      sum += squared(run.solution(method, i, r) -
                     problem.truth()->x.block(i / kLanes)[Field{0, d}].row(r)[i % kLanes]);
  return sum / static_cast<double>(n);
}

}  // namespace affpcl
