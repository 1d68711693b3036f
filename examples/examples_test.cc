// The examples satisfy what every method and every problem must, and do what they say.
#include <gtest/gtest.h>

#include "affpcl/study/study.h"
#include "examples/mean_estimation.h"
#include "examples/pull_to_mean.h"
#include "tests/conformance.h"

namespace affpcl {
namespace {

TEST(Examples, MethodConforms) {
  for (const ProblemKind& problem : problem_kinds())
    conformance::check_method(examples::PullToMean::kind(), problem);
}

TEST(Examples, ProblemConforms) { conformance::check_problem(examples::MeanEstimation::kind()); }

// Added to the catalogues they can be named in a spec. Agents whose means are nearly the same gain
// by moving towards each other; with a share of 0 the method is learning alone.
TEST(Examples, RunFromASpec) {
  add_method_kind(examples::PullToMean::kind());
  add_problem_kind(examples::MeanEstimation::kind());
  const StudyResult result = run_study(read_study(R"(
[problem]
kind = "mean_estimation"
spread = 0.01
[run]
steps = 200
step_size = 0.05
[[method]]
kind = "pull_to_mean"
[[method]]
kind = "pull_to_mean"
name = "no pull"
share = 0.0
[[method]]
kind = "independent"
)",
                                                  "test"),
                                       {});
  const SettingResult& s = result.settings.at(0);
  EXPECT_LT(s.methods[0].vs_independent.mean, 0.5);
  EXPECT_EQ(s.methods[1].mse.mean, s.methods[2].mse.mean);
}

// What the facets are for: with the learnt objective and exact ratios AffPCL is unbiased and gains
// where agents differ; without ratios it is biased, which the error shows once noise is gone.
TEST(Examples, LearntObjectiveAndExactRatio) {
  add_problem_kind(examples::MeanEstimation::kind());
  const StudyResult result = run_study(read_study(R"(
[problem]
kind = "mean_estimation"
spread = 0.3
tilt = 0.3
[run]
steps = 4000
step_size = {schedule = "log-constant"}
replicates = 6
[[method]]
kind = "affpcl"
objective = "learnt"
ratio = "exact"
[[method]]
kind = "affpcl"
name = "no ratio"
objective = "learnt"
ratio = "none"
[[method]]
kind = "independent"
)",
                                                  "test"),
                                       {});
  const SettingResult& s = result.settings.at(0);
  EXPECT_LT(s.methods[0].vs_independent.hi, 0.7);
  EXPECT_GT(s.methods[1].vs_independent.lo, 1);
}

}  // namespace
}  // namespace affpcl
