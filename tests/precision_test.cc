// precision = "f32" of the exact correction: close to f64 on every instruction set, the same bits
// on any number of threads, and refused where there is no such kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

std::vector<double> solutions(const Problem& problem, const std::string& precision, Team& team) {
  const MethodKind& kind = method_kind("affpcl");
  std::vector<RunMethod> methods(1);
  methods[0].method = kind.make(Values(kind.params, {{"precision", precision}}, "method"));
  RunOptions options;
  options.steps = 40;
  Run run(problem, std::move(methods), options, team);
  run.advance(options.steps);
  std::vector<double> all;
  for (std::int64_t i = 0; i < problem.shape().agents; ++i)
    for (int r = 0; r < problem.shape().d; ++r) all.push_back(run.solution(0, i, r));
  return all;
}

class PrecisionOn : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }
  void TearDown() override { use_instruction_set(""); }
};

TEST_P(PrecisionOn, SingleIsCloseToDouble) {
  for (const std::int64_t agents : {2, 20, 300})
    for (const double delta : {0.05, 0.3, 0.8}) {
      const Gaussian problem({.agents = agents, .delta_env = delta}, 3, 0);
      const auto team = serial_team();
      const std::vector<double> exact = solutions(problem, "f64", *team),
                                single = solutions(problem, "f32", *team);
      double gap = 0, size = 0;
      for (std::size_t k = 0; k < exact.size(); ++k) {
        gap = std::max(gap, std::abs(single[k] - exact[k]));
        size = std::max(size, std::abs(exact[k]));
      }
      EXPECT_LT(gap, 1e-5 * size) << agents << " agents, delta " << delta;
      EXPECT_GT(gap, 0) << "is it single precision at all?";
    }
}

TEST_P(PrecisionOn, BitsDoNotDependOnThreads) {
  const Gaussian problem({.agents = 600, .dim = 3}, 3, 0);
  const auto one = serial_team(), three = thread_team(3);
  EXPECT_EQ(solutions(problem, "f32", *one), solutions(problem, "f32", *three));
  EXPECT_EQ(solutions(problem, "f64", *one), solutions(problem, "f64", *three));
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, PrecisionOn,
                         ::testing::ValuesIn(available_instruction_sets()),
                         [](const auto& set) { return set.param; });

TEST(Precision, IsRefusedWhereThereIsNoKernel) {
  const ProblemKind& kind = problem_kind("tabular");
  const auto problem = kind.make(Values(kind.params, {}, "problem"), 1, 0);
  const auto team = serial_team();
  try {
    solutions(*problem, "f32", *team);
    FAIL() << "accepted";
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("precision = \"f32\""), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace affpcl
