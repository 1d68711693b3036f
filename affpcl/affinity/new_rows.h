// What an agent's new rows look like: normal, with its own mean and a covariance of the columns between
// its own and that within the agents of a centre.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/random/streams.h"
#include "affpcl/table/frame.h"

namespace affpcl {

class NewRows {
 public:
  NewRows(const Frame& frame, const std::vector<std::size_t>& rows);  // the rows that are known

  // The mean is known up to the scatter of its rows.
  Vector draw_mean(const Key& key, std::int64_t agent) const;
  // One row with this mean; numbers[j] are standard normal.
  Vector row(const Vector& mean, const Vector& numbers) const;
  // The expected square of z'off.
  double square(const Vector& mean, const Vector& off) const;

 private:
  Vector mean_;
  Matrix root_;  // root' root is the covariance
  double rows_;
};

}  // namespace affpcl
