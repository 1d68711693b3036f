// Sums whose bits do not depend on their order: numbers in fixed point, 64 bits before and 64 after
// the binary point, added modulo 2^128. They add to the same bits under masks that cancel, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace affpcl {

struct Fixed {
  std::uint64_t low = 0, high = 0;  // two's complement

  friend bool operator==(const Fixed&, const Fixed&) = default;
  Fixed& operator+=(Fixed v) {
    low += v.low;
    high += v.high + (low < v.low ? 1 : 0);
    return *this;
  }
  Fixed operator-() const { return {~low + 1, ~high + (low == 0 ? 1 : 0)}; }
};

// The sum of one party must lie below this in size, so that 1024 parties cannot overflow.
inline constexpr double kLargestFixed = 0x1p52;
// Of the last bit.
inline constexpr double kFixedUnit = 0x1p-64;

// The nearest one to v, for |v| < 2^63; exact where |v| >= 2^-12 or v = 0.
Fixed to_fixed(double v);
// Adds the nearest ones, number by number, to `sums`. What is not below kLargestFixed in size is left
// out; returns how many these are.
std::size_t add_fixed(std::span<const double> numbers, Fixed* sums);
// The nearest double.
double to_double(Fixed v);

}  // namespace affpcl
