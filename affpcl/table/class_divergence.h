// How far the class probabilities of two models are apart, in units of the log loss.
#pragma once

#include <span>

#include "affpcl/math/dense.h"

namespace affpcl {

// The loss of one prediction minus that of another is linear in the outcome y (1 at its class), so it is
// gap + (y - from)'slope for every y, the gap being its mean where `from` is right. docs/explain/fit.md,
// "Gains".
struct Divergence {
  double gap = 0;
  // The gap to second order: a squared distance, in which the errors of `from` are measured.
  double norm = 0;
  Vector slope;
};
Divergence class_divergence(std::span<const double> from, std::span<const double> to);

}  // namespace affpcl
