// Differential privacy of the rows: what was stated, and the noise that follows from it. Nothing here
// is taken from the data. docs/explain/privacy.md derives it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/table/known.h"

namespace affpcl {

// What the values of a column are known to lie in: an interval, or the levels of a column of texts.
struct Bound {
  std::string column;
  double low = 0, high = 0;
  std::vector<std::string> levels = {};
};

// "y=0:100,x=-3:3,kind=a|b", or a file of such entries, one a line.
std::vector<Bound> parse_bounds(const std::string& text);

struct PrivacyTerms {
  double epsilon = 0, delta = 0;
  std::vector<Bound> bounds;  // in their order
  double multiplier = 0;      // of the noise: its standard deviation over the sensitivity
  double sensitivity = 0;     // how far one row moves all moments: Euclidean length, |z| <= 1
  std::int64_t sigma = 0;     // of the noise on each integer
  double noise() const;       // of each moment of rows in [-1, 1]

  // `privacy` is "epsilon=4,delta=1e-5". BadInput where one of the two texts makes no sense.
  static PrivacyTerms parse(std::string_view privacy, const std::string& bounds);
  const Bound* find(std::string_view column) const;
  // The columns of a fit, in the order of the bounds, scaled by them to [-1, 1]; levels to 0 and 1.
  KnownColumns columns(const FrameOptions& options) const;
};

// Values in [-1, 1] become whole numbers of this unit, their products of its square.
inline constexpr int kUnitBits = 16;
inline constexpr double kUnit = 1.0 / (1 << kUnitBits);

}  // namespace affpcl
