#include "affpcl/math/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

TEST(Schedule, Constant) {
  const Schedule s{.kind = Schedule::Kind::kConstant, .value = 0.03};
  for (std::int64_t t : {0, 1, 1000000}) EXPECT_EQ(s.at(t), 0.03);
}

TEST(Schedule, LogConstantIsLnTOverT) {
  const Schedule s{.kind = Schedule::Kind::kLogConstant, .horizon = 60};
  EXPECT_DOUBLE_EQ(s.at(0), std::log(60.0) / 60);
  EXPECT_EQ(s.at(59), s.at(0));
  const Schedule long_run{.kind = Schedule::Kind::kLogConstant, .horizon = 1000};
  EXPECT_NEAR(long_run.at(5), 0.006907755278982137, 1e-17);
}

TEST(Schedule, DiminishingIsFourOverTPlusT0PlusOne) {
  const Schedule s{.kind = Schedule::Kind::kDiminishing, .t0 = 7};
  EXPECT_EQ(s.at(0), 0.5);
  EXPECT_EQ(s.at(2), 0.4);
  EXPECT_DOUBLE_EQ(s.at(92), 0.04);
  for (std::int64_t t = 0; t < 100; ++t) EXPECT_LT(s.at(t + 1), s.at(t));
}

TEST(StepSizes, ModulesMultiplyTheirFactor) {
  const StepSizes::Module m{{.kind = Schedule::Kind::kDiminishing, .t0 = 3}, 2.5};
  EXPECT_EQ(m.at(4), 2.5 * 4 / 8);
}

TEST(StepSizes, ACommonStepIsOneColumn) {
  StepSizes step;
  step.agent = {{.value = 0.02}, 3};
  Scratch scratch;
  EXPECT_TRUE(step.common());
  const In row = step.agents(5, Lanes{64, 10}, scratch);
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.width, 1);
  EXPECT_EQ(row.at(0, 9), 0.02 * 3);
}

TEST(StepSizes, AgentsMayHaveTheirOwn) {
  StepSizes step;
  step.agent = {{.kind = Schedule::Kind::kDiminishing, .t0 = 1}, 99};  // the factor is replaced
  for (int i = 0; i < 70; ++i) step.agent_factors.push_back(i + 1);
  Scratch scratch;
  EXPECT_FALSE(step.common());
  const In row = step.agents(2, Lanes{64, 6}, scratch);
  ASSERT_EQ(row.width, kLanes);
  for (int l = 0; l < kLanes; ++l) EXPECT_EQ(row.at(0, l), l < 6 ? 1.0 * (65 + l) : 0.0) << l;
}

}  // namespace
}  // namespace affpcl
