// The search for the D and s^2 of largest evidence, for one form of D.
#pragma once

#include "affpcl/mixed/decomposition.h"
#include "affpcl/mixed/evidence.h"

namespace affpcl {

inline constexpr double kSmallestNoise = 1e-10;  // s^2; the target has variance 1

// The decomposition at the evidence's last point; D has `numbers` that are not 0.
Decomposition decomposition_at(const Evidence& evidence, Covariance form, const Matrix& D,
                               double s2, double numbers, const Moments& moments);

// A climb starts here.
struct GroupStart {
  Vector theta;  // variances of the groups
  double s2 = 1;
};
// One variance per group: Newton steps with the average information, kept to variances >= 0, and
// where these do not raise the evidence the step that always does.
Decomposition climb_groups(const Moments& moments, const VarianceGroups& groups, GroupStart start,
                           const DecompositionOptions& options, Evidence& evidence);

// A full D, from a diagonal one. It is given up early where it is far from the evidence `needed`.
Decomposition climb_full(const Moments& moments, const Decomposition& diagonal, double needed,
                         const DecompositionOptions& options, Evidence& evidence);

}  // namespace affpcl
