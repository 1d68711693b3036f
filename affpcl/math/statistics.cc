#include "affpcl/math/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double dot(std::span<const double> a, double mean_a, std::span<const double> b, double mean_b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum;
}

std::vector<double> ranks(std::span<const double> x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  std::vector<double> rank(x.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && x[order[j]] == x[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) rank[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return rank;
}

}  // namespace

double mean(std::span<const double> values) {
  return values.empty() ? kNone
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// A study asks for the same one thousands of times, and it takes 20 us.
double student_quantile(double probability, double freedom) {
  thread_local struct { double probability = kNone, freedom = kNone, value = kNone; } last;
  if (last.probability != probability || last.freedom != freedom) {
    using Distribution = boost::math::students_t_distribution<double>;
    last = {probability, freedom, boost::math::quantile(Distribution(freedom), probability)};
  }
  return last.value;
}

Estimate estimate(std::span<const double> values) {
  const double m = mean(values), n = static_cast<double>(values.size());
  Estimate e{m, kNone, kNone, median({values.begin(), values.end()})};
  if (values.size() > 1) {
    const double half = student_quantile((1 + kConfidence) / 2, n - 1) *
                        std::sqrt(dot(values, m, values, m) / (n - 1) / n);
    e.lo = m - half;
    e.hi = m + half;
  }
  return e;
}

Estimate ratio_of_means(std::span<const double> a, std::span<const double> b) {
  const double A = std::accumulate(a.begin(), a.end(), 0.0),
               B = std::accumulate(b.begin(), b.end(), 0.0);
  const double n = static_cast<double>(a.size());
  std::vector<double> each(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) each[i] = a[i] / b[i];
  Estimate e{A / B, kNone, kNone, median(each)};
  if (a.size() > 1) {
    std::vector<double> without(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) without[i] = (A - a[i]) / (B - b[i]);
    const double m = mean(without);
    const double half = student_quantile((1 + kConfidence) / 2, n - 1) *
                        std::sqrt((n - 1) / n * dot(without, m, without, m));
    e.lo = e.mean - half;
    e.hi = e.mean + half;
  }
  return e;
}

Estimate slope(std::span<const double> x, std::span<const double> y) {
  const double mx = mean(x), my = mean(y), n = static_cast<double>(x.size());
  const double sxx = dot(x, mx, x, mx), b = dot(x, mx, y, my) / sxx;
  Estimate e{b, kNone, kNone, kNone};
  if (x.size() > 2) {
    const double rest = std::max(0.0, dot(y, my, y, my) - b * b * sxx) / (n - 2);
    const double half = student_quantile((1 + kConfidence) / 2, n - 2) * std::sqrt(rest / sxx);
    e.lo = b - half;
    e.hi = b + half;
  }
  return e;
}

double skewed_t(double n, double s1, double s2, double s3) {
  const double m = s1 / n, var = s2 / n - m * m;
  if (var <= 1e-14 * s2 / n) return 0;
  const double sd = std::sqrt(var);
  const double skew = (s3 / n - 3 * m * s2 / n + 2 * m * m * m) / (var * sd);
  const double U = m / sd;
  return std::sqrt(n) * (U + skew * U * U / 3 + skew * skew * U * U * U / 27 + skew / (6 * n));
}

double normal_limit(double probability) {
  return boost::math::quantile(
      boost::math::complement(boost::math::normal_distribution<double>(), probability));
}

double rank_correlation(std::span<const double> x, std::span<const double> y) {
  std::vector<double> known_x, known_y;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!std::isnan(x[i]) && !std::isnan(y[i])) known_x.push_back(x[i]), known_y.push_back(y[i]);
  if (known_x.size() < 2) return kNone;
  const std::vector<double> rx = ranks(known_x), ry = ranks(known_y);
  const double mx = mean(rx), my = mean(ry);
  return dot(rx, mx, ry, my) / std::sqrt(dot(rx, mx, rx, mx) * dot(ry, my, ry, my));
}

}  // namespace affpcl
