#include "affpcl/table/stack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/table/folds.h"

namespace affpcl {
namespace {

std::vector<ByKind<double>> weights(const std::vector<StackLosses>& losses, bool log_losses) {
  const auto team = serial_team();
  return stack_weights(losses, losses.size(), log_losses, *team);
}

// Losses of an agent: `base` plus what each model costs, times its weight.
StackLosses linear(double base, const ByKind<double>& cost, double rows) {
  StackLosses l;
  for (std::size_t g = 0; g < kStackGrid; ++g) {
    l.loss[g] = base;
    for (std::size_t k = 0; k < 3; ++k) l.loss[g] += cost[k] * stack_grid()[g][k];
  }
  l.rows = rows;
  return l;
}

TEST(Stack, TheGridHoldsConvexWeightsAndBeginsWithThePersonalisedModel) {
  EXPECT_EQ(stack_grid()[0], (ByKind<double>{1, 0, 0}));
  for (const ByKind<double>& w : stack_grid()) {
    EXPECT_EQ(w[0] + w[1] + w[2], 1);
    for (double v : w) EXPECT_GE(v, 0);
  }
}

// Rows that tell nothing leave the prior: two agents' worth of the personalised model, one spread
// over the grid, whose mean is a third each.
TEST(Stack, EqualLossesLeaveThePrior) {
  for (const bool log_losses : {false, true}) {
    const auto w = weights(std::vector<StackLosses>(5, linear(10, {0, 0, 0}, 10)), log_losses);
    EXPECT_NEAR(w[0][0], (2 + 1 / 3.0) / 3, 1e-4);
    EXPECT_NEAR(w[0][1], 1 / 9.0, 1e-4);
  }
}

// One agent, by hand: the EM's fixed point p_g = (r_g + a_g) / 4 with r_g ~ p_g exp(-loss_g).
TEST(Stack, OneAgentIsAFixedPoint) {
  const StackLosses l = linear(3, {1, 0, 2}, 4);
  const auto w = weights({l}, true);
  std::array<double, kStackGrid> p, r;
  p.fill(1.0 / kStackGrid);
  for (int step = 0; step < 5000; ++step) {
    double sum = 0;
    for (std::size_t g = 0; g < kStackGrid; ++g) sum += r[g] = p[g] * std::exp(-l.loss[g]);
    for (std::size_t g = 0; g < kStackGrid; ++g)
      p[g] = (r[g] / sum + 1.0 / kStackGrid + (g == 0 ? 2 : 0)) / 4;
  }
  double sum = 0, own = 0;
  for (std::size_t g = 0; g < kStackGrid; ++g) sum += r[g] = p[g] * std::exp(-l.loss[g]);
  for (std::size_t g = 0; g < kStackGrid; ++g) own += r[g] / sum * stack_grid()[g][0];
  EXPECT_NEAR(w[0][0], own, 1e-4);
}

// An agent with few rows leans on what suits the others; one with many follows its own.
TEST(Stack, AgentsLearnFromEachOther) {
  std::vector<StackLosses> losses(30, linear(100, {60, 60, 0}, 100));  // pooled is best
  losses.push_back(linear(1, {0, 0, 0}, 1));
  losses.push_back(linear(100, {300, 0, 300}, 100));
  const auto w = weights(losses, false);
  EXPECT_GT(w[0][2], 0.95);
  EXPECT_GT(w[30][2], 0.8);
  EXPECT_GT(w[31][1], 0.95);
}

// Var of a mixture: the mean variance and the variance of the means.
TEST(Stack, ACombinationIsAsSureAsItsPartsAgree) {
  const LinearModel a{{1, 0}, {1, 1}, {1, 0.5, 0.5, 1}, 2}, b{{3, 0}, {2, 2}, {4, 0, 0, 4}, 4};
  const LinearModel m = combined({a, b, a}, {0.25, 0.5, 0.25});
  EXPECT_EQ(m.x, (std::vector<double>{2, 0}));
  EXPECT_EQ(m.cov, (std::vector<double>{2.5 + 1, 0.25, 0.25, 2.5}));
  EXPECT_DOUBLE_EQ(m.se[0], std::sqrt(3.5));
  EXPECT_EQ(m.s2, 3);
  const LinearModel same = combined({a, b, b}, {1, 0, 0});
  EXPECT_EQ(same.x, a.x);
  EXPECT_EQ(same.cov, a.cov);
}

}  // namespace
}  // namespace affpcl
