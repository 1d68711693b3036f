// Means with intervals. All intervals are 90 % and two-sided.
#pragma once

#include <span>
#include <vector>

namespace affpcl {

inline constexpr double kConfidence = 0.90;

struct Estimate {  // lo and hi are NaN where one value alone says nothing of its spread
  double mean = 0, lo = 0, hi = 0, median = 0;
};

double mean(std::span<const double> values);
double median(std::vector<double> values);

// Quantile of Student's t with `freedom` degrees of freedom.
double student_quantile(double probability, double freedom);

// Student t interval of the mean of independent values.
Estimate estimate(std::span<const double> values);

// The ratio mean(a) / mean(b) of paired values, with a jackknife interval.
Estimate ratio_of_means(std::span<const double> a, std::span<const double> b);

// Least-squares slope of y on x, with its t interval (mean, lo, hi).
Estimate slope(std::span<const double> x, std::span<const double> y);

// Student's t of n numbers with sums s1, s2, s3 of their first three powers against mean 0, made
// normal up to O(1/n) by Hall's (1992) monotone cubic for skewed numbers. 0 where they do not vary.
double skewed_t(double n, double s1, double s2, double s3);

// Upper quantile of the standard normal: exceeded with this probability.
double normal_limit(double probability);

// Spearman's rank correlation; ties share their mean rank.
double rank_correlation(std::span<const double> x, std::span<const double> y);

}  // namespace affpcl
