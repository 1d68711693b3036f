#include "affpcl/math/gaussian_mechanism.h"

#include <cmath>
#include <numbers>

namespace affpcl {
namespace {

// log P(Z > x) of a standard normal Z.
double log_tail(double x) {
  constexpr double kFar = 20;  // from here on erfc loses digits, and the expansion has enough
  if (x < kFar) return std::log(std::erfc(x / std::numbers::sqrt2) / 2);
  const double square = x * x;
  return -square / 2 - std::log(x * std::sqrt(2 * std::numbers::pi)) +
         std::log1p(-1 / square + 3 / (square * square));
}

}  // namespace

double gaussian_delta(double epsilon, double multiplier) {
  const double near = epsilon * multiplier - 1 / (2 * multiplier), far = near + 1 / multiplier;
  const double first = log_tail(near), second = epsilon + log_tail(far);
  return second >= first ? 0 : std::exp(first) * -std::expm1(second - first);
}

double gaussian_multiplier(double epsilon, double delta) {
  double low = 0, high = 1;
  while (gaussian_delta(epsilon, high) > delta) low = high, high *= 2;
  for (int k = 0; k < 200 && high - low > 1e-12 * high; ++k) {
    const double middle = (low + high) / 2;
    (gaussian_delta(epsilon, middle) > delta ? low : high) = middle;
  }
  return high;
}

// One number: the ratio of the two probabilities of x is 1 + (x^2 / sigma^2 - 1) / 24 sigma^2 + ..., so
// the distance is below 1 / 40 sigma^2 from sigma = 2 on (a test computes it).
double discrete_delta(double epsilon, double sigma, double numbers) {
  return (1 + std::exp(epsilon)) * numbers / (40 * sigma * sigma);
}

}  // namespace affpcl
