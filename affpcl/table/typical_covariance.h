// Covariances of many agents' coefficients, in memory that is linear in the number of coefficients:
// a multiple of one typical covariance that all agents share, corrected in the few directions in
// which an agent's own differs most from it.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/table/model.h"

namespace affpcl {

inline constexpr std::size_t kCovarianceDirections = 8;  // at most

class TypicalCovariance {
 public:
  // typical: a mean of agents' covariances; second: E z z' of rows.
  TypicalCovariance(MatrixView typical, MatrixView second);
  const std::vector<double>& typical() const { return typical_.all(); }
  // Replaces cov by near_cov, which gives average rows the same variance.
  void reduce(LinearModel& model) const;

 private:
  Matrix typical_, second_;
  Matrix root_,
      whitening_;  // root'root = typical; whitening typical whitening' = I where it has rank
};

}  // namespace affpcl
