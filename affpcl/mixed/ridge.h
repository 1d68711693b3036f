// Ridge regression from one set of moments; the intercept, the first column, is not penalised, and
// the strength comes from generalised cross-validation on the same rows. It is the independent and
// the pooled baseline.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/moments.h"

namespace affpcl {

struct Ridge {
  std::vector<double> x;        // [d]
  std::vector<double> inverse;  // (X'X + strength)^-1, [d][d]; x' inverse x is a row's leverage
  double strength = 0, freedom = 0, s2 = 0;
};

// From agent's moments; X'X must have the column of ones first. Without rows: all 0.
Ridge fit_ridge(const Moments& moments, std::size_t agent);

// The moments of all agents together.
Moments pooled(const Moments& moments, Team& team);

}  // namespace affpcl
