#include "affpcl/math/fixed.h"

#include <bit>
#include <cmath>

namespace affpcl {

Fixed to_fixed(double v) {
  const double size = std::abs(v);
  Fixed f{.low = 0, .high = static_cast<std::uint64_t>(size)};
  double units = (size - static_cast<double>(f.high)) / kFixedUnit;  // exact: a whole power of 2
  if (units < 0x1p52) units = (units + 0x1p52) - 0x1p52;             // to the nearest whole number
  f.low = static_cast<std::uint64_t>(units);
  return v < 0 ? -f : f;
}

std::size_t add_fixed(std::span<const double> numbers, Fixed* sums) {
  constexpr int kMantissa = 52,
                kPoint = 1023 + kMantissa - 64;  // exponent of a mantissa that is units
  std::size_t left_out = 0;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const auto bits = std::bit_cast<std::uint64_t>(numbers[k]);
    const int shift = static_cast<int>(bits >> kMantissa & 0x7ff) - kPoint;
    if (shift > 0 && shift < 64) {  // 2^-12 and more, but below 2^52: a whole number of units
      const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << kMantissa) - 1)) |
                                     std::uint64_t{1} << kMantissa,
                          low = mantissa << shift, high = mantissa >> (64 - shift),
                          sign = -(bits >> 63), carry = sign & (low == 0 ? 1 : 0);
      sums[k] += Fixed{(low ^ sign) - sign, (high ^ sign) + carry};
    } else if (std::abs(numbers[k]) < kLargestFixed) {
      sums[k] += to_fixed(numbers[k]);
    } else {
      ++left_out;
    }
  }
  return left_out;
}

double to_double(Fixed v) {
  const bool negative = v.high >> 63 != 0;
  if (negative) v = -v;
  double size = 0;
  if (v.high == 0) {
    size = static_cast<double>(v.low) * kFixedUnit;
  } else {
    // The leading 64 bits. The last of them stands for all that follow, so one rounding is right.
    const int shift = std::countl_zero(v.high);
    std::uint64_t lead = v.high, rest = v.low;
    if (shift > 0) lead = v.high << shift | v.low >> (64 - shift), rest = v.low << shift;
    size = std::ldexp(static_cast<double>(lead | (rest != 0 ? 1 : 0)), -shift);
  }
  return negative ? -size : size;
}

}  // namespace affpcl
