#include "affpcl/math/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

using Numbers = std::vector<double>;

constexpr double kT2 = 2.9199855803537251;  // t quantile .95, 2 degrees of freedom

TEST(Student, QuantilesAgreeWithTheTables) {
  // One and two degrees of freedom have closed forms: tan(pi (p - 1/2)) and
  // (2p - 1) sqrt(2 / (4 p (1 - p))). The rest by integrating
  // the density with Simpson's rule and solving with Newton's, good to 1e-12.
  EXPECT_NEAR(student_quantile(0.95, 1), std::tan(M_PI * 0.45), 1e-12);
  EXPECT_NEAR(student_quantile(0.95, 2), 0.9 * std::sqrt(2 / (4 * 0.95 * 0.05)), 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 2), kT2, 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.131846786326650, 1e-12);
  EXPECT_NEAR(student_quantile(0.95, 9), 1.833112932656240, 1e-12);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.228138851986270, 1e-12);
  EXPECT_NEAR(student_quantile(0.95, 30), 1.697260886593970, 1e-12);
  EXPECT_NEAR(student_quantile(0.95, 1e9), 1.644853626951472, 1e-8);
  EXPECT_NEAR(student_quantile(0.05, 9), -student_quantile(0.95, 9), 1e-13);
  EXPECT_NEAR(student_quantile(0.5, 9), 0, 1e-15);
}

TEST(Mean, OfNothingIsNotANumber) {
  EXPECT_EQ(mean(Numbers{1, 2, 6}), 3);
  EXPECT_TRUE(std::isnan(mean(Numbers{})));
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7, 7, 1, 7}), 7);
}

TEST(EstimateOf, FiveValuesByHand) {
  const Estimate e = estimate(Numbers{1, 2, 3, 4, 10});  // sum of squared deviations 50
  const double half = 2.131846786326650 * std::sqrt(50.0 / 4 / 5);
  EXPECT_DOUBLE_EQ(e.mean, 4);
  EXPECT_NEAR(e.lo, 4 - half, 1e-12);
  EXPECT_NEAR(e.hi, 4 + half, 1e-12);
  EXPECT_EQ(e.median, 3);
}

TEST(EstimateOf, OneValueSaysNothingOfItsSpread) {
  const Estimate e = estimate(Numbers{2.5});
  EXPECT_EQ(e.mean, 2.5);
  EXPECT_EQ(e.median, 2.5);
  EXPECT_TRUE(std::isnan(e.lo));
  EXPECT_TRUE(std::isnan(e.hi));
}

TEST(EstimateOf, NothingIsNotANumber) {
  const Estimate e = estimate(Numbers{});
  EXPECT_TRUE(std::isnan(e.mean));
  EXPECT_TRUE(std::isnan(e.lo));
  EXPECT_TRUE(std::isnan(e.median));
}

TEST(EstimateOf, EqualValuesHaveNoWidth) {
  const Estimate e = estimate(Numbers{0.5, 0.5, 0.5});
  EXPECT_EQ(e.lo, 0.5);
  EXPECT_EQ(e.hi, 0.5);
}

TEST(RatioOfMeans, JackknifeByHand) {
  // 9/8; without each pair 8/6, 7/6, 3/4, whose mean is 13/12 and squared deviations sum to 26/144.
  const Estimate e = ratio_of_means(Numbers{1, 2, 6}, Numbers{2, 2, 4});
  const double half = kT2 * std::sqrt(2.0 / 3 * 26 / 144);
  EXPECT_DOUBLE_EQ(e.mean, 9.0 / 8);
  EXPECT_NEAR(e.lo, 9.0 / 8 - half, 1e-13);
  EXPECT_NEAR(e.hi, 9.0 / 8 + half, 1e-13);
  EXPECT_EQ(e.median, 1);  // of 1/2, 1, 3/2
}

TEST(RatioOfMeans, OfAMethodWithItselfIsExactlyOne) {
  const Numbers a = {0.1, 0.7, 0.3, 1e-3};
  const Estimate e = ratio_of_means(a, a);
  EXPECT_EQ(e.mean, 1);
  EXPECT_EQ(e.lo, 1);
  EXPECT_EQ(e.hi, 1);
}

TEST(RatioOfMeans, OneOrNoPair) {
  const Estimate one = ratio_of_means(Numbers{1}, Numbers{4});
  EXPECT_EQ(one.mean, 0.25);
  EXPECT_TRUE(std::isnan(one.lo));
  EXPECT_TRUE(std::isnan(ratio_of_means(Numbers{}, Numbers{}).mean));
}

TEST(Slope, ByHand) {
  // sxx = 5, sxy = 4.5, residual sum of squares .7.
  const Estimate e = slope(Numbers{0, 1, 2, 3}, Numbers{0, 1, 1, 3});
  const double half = kT2 * std::sqrt(0.7 / 2 / 5);
  EXPECT_DOUBLE_EQ(e.mean, 0.9);
  EXPECT_NEAR(e.lo, 0.9 - half, 1e-12);
  EXPECT_NEAR(e.hi, 0.9 + half, 1e-12);
}

TEST(Slope, OfALineHasNoWidth) {
  const Estimate e = slope(Numbers{1, 2, 4, 8}, Numbers{3, 1, -3, -11});
  EXPECT_DOUBLE_EQ(e.mean, -2);
  EXPECT_NEAR(e.hi - e.lo, 0, 1e-6);
  const Estimate two = slope(Numbers{1, 2}, Numbers{3, 1});
  EXPECT_EQ(two.mean, -2);
  EXPECT_TRUE(std::isnan(two.lo));
}

TEST(RankCorrelation, SeesOnlyTheOrder) {
  EXPECT_DOUBLE_EQ(rank_correlation(Numbers{1, 2, 3, 4}, Numbers{1, 8, 9, 1000}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(Numbers{4, 3, 2, 1}, Numbers{1, 8, 9, 1000}), -1);
}

// Pairs with a value that is not known are left out; without two known pairs there is none.
TEST(RankCorrelation, LeavesOutWhatIsNotKnown) {
  const double none = std::nan("");
  EXPECT_DOUBLE_EQ(rank_correlation(Numbers{1, none, 2, 3}, Numbers{3, 1, 2, 1}), -1);
  EXPECT_TRUE(std::isnan(rank_correlation(Numbers{none, none, 1}, Numbers{1, 2, none})));
}

TEST(RankCorrelation, TiesShareTheirMeanRank) {
  // ranks 0 1.5 1.5 3 and 0 2 1 3
  EXPECT_DOUBLE_EQ(rank_correlation(Numbers{1, 2, 2, 3}, Numbers{1, 3, 2, 4}),
                   4.5 / std::sqrt(4.5 * 5));
}

// Student's t where there is no skewness; the published cubic where there is.
TEST(Statistics, SkewedT) {
  const auto of = [](const std::vector<double>& v) {
    double s[3] = {};
    for (double x : v) s[0] += x, s[1] += x * x, s[2] += x * x * x;
    return skewed_t(static_cast<double>(v.size()), s[0], s[1], s[2]);
  };
  EXPECT_NEAR(of({-1, 0, 1, 2}), std::sqrt(4.0) * 0.5 / std::sqrt(1.25), 1e-12);
  EXPECT_EQ(of({0, 0, 0}), 0);
  EXPECT_EQ(of({0.1, 0.1, 0.1, 0.1}), 0);
  // {0, 0, 3}: mean 1, variance 2, third moment 2, so U = skewness = 1/sqrt(2).
  const double U = 1 / std::sqrt(2.0), g = U;
  EXPECT_NEAR(of({0, 0, 3}), std::sqrt(3.0) * (U + g * U * U / 3 + g * g * U * U * U / 27 + g / 18),
              1e-12);
  EXPECT_NEAR(normal_limit(0.05), 1.6448536, 1e-6);
}

}  // namespace
}  // namespace affpcl
