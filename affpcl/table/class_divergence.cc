#include "affpcl/table/class_divergence.h"

#include <algorithm>
#include <cmath>

namespace affpcl {
namespace {

constexpr double kLeast = 1e-300;  // of a probability

}  // namespace

Divergence class_divergence(std::span<const double> from, std::span<const double> to) {
  Divergence d{0, 0, Vector(from.size())};
  for (std::size_t k = 0; k < from.size(); ++k) {
    d.slope[k] = std::log(std::max(from[k], kLeast) / std::max(to[k], kLeast));
    d.gap += from[k] * d.slope[k];
  }
  for (std::size_t k = 0; k < from.size(); ++k)
    d.norm += from[k] * std::pow(d.slope[k] - d.gap, 2) / 2;
  return d;
}

}  // namespace affpcl
