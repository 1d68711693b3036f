#include "affpcl/mixed/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace affpcl {
namespace {

struct Case {
  Family family;
  std::size_t classes;
  Vector psi, from, to;
};
const std::vector<Case> kCases = {
    {Family::kGaussian, 2, {0}, {-0.4}, {1.1}},
    {Family::kPoisson, 2, {}, {2.5}, {0.3}},
    {Family::kNegativeBinomial, 2, {0.7}, {2.5}, {6}},
    {Family::kGamma, 2, {0.5}, {1.5}, {0.2}},
    {Family::kBinomial, 2, {}, {0.3, 0.7}, {0.999, 0.001}},
    {Family::kMultinomial, 3, {}, {0.2, 0.5, 0.3}, {0.7, 0.01, 0.29}},
};
class EveryDivergence : public testing::TestWithParam<Case> {};

// The loss of `to` minus that of `from` is gap + (y - from)'slope for every outcome y.
TEST_P(EveryDivergence, IsTheDifferenceOfLosses) {
  const auto& [family, classes, psi, from, to] = GetParam();
  const Likelihood likelihood(family, classes);
  const Divergence d = divergence(likelihood, psi, from, to);
  const bool classify = from.size() > 1;
  for (int y = classify ? 0 : 1; y < (classify ? static_cast<int>(classes) : 5); ++y) {
    double said = d.gap;
    for (std::size_t k = 0; k < from.size(); ++k)
      said +=
          ((classify ? static_cast<double>(static_cast<int>(k) == y) : y) - from[k]) * d.slope[k];
    EXPECT_NEAR(
        said, likelihood.loss(psi, y, 1, to.data()) - likelihood.loss(psi, y, 1, from.data()), 1e-9)
        << y;
  }
}

TEST_P(EveryDivergence, IsItsNormWhereModelsAreClose) {
  const auto& [family, classes, psi, from, to] = GetParam();
  Vector near = from;
  for (std::size_t k = 0; k < near.size(); ++k) near[k] += 1e-3 * (to[k] - from[k]);
  const Divergence d = divergence(Likelihood(family, classes), psi, from, near);
  EXPECT_GT(d.gap, 0);
  EXPECT_NEAR(d.norm / d.gap, 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(All, EveryDivergence, testing::ValuesIn(kCases), [](const auto& of) {
  return std::string("Family") + std::to_string(static_cast<int>(of.param.family));
});

}  // namespace
}  // namespace affpcl
