// What the tests of problems share: a block's rows, seen lane by lane.
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "affpcl/math/blocks.h"

namespace affpcl {

struct BlockRows {  // rows x 64 numbers
  explicit BlockRows(int n) : rows(n), data(static_cast<std::size_t>(n) * kLanes) {}
  Out out() const { return {data.data(), rows}; }
  In in() const { return out(); }
  double operator()(int r, int l) const { return out().row(r)[l]; }
  Eigen::VectorXd lane(int l) const {
    Eigen::VectorXd v(rows);
    for (int r = 0; r < rows; ++r) v(r) = in().at(r, l);
    return v;
  }
  void set(int l, const Eigen::VectorXd& v) const {
    for (int r = 0; r < rows; ++r) out().row(r)[l] = v(r);
  }
  int rows;
  Buffer data;
};

inline In shared(const Eigen::VectorXd& v) { return {v.data(), static_cast<int>(v.size()), 1}; }
inline Eigen::VectorXd vector(const std::vector<double>& v) {
  return Eigen::Map<const Eigen::VectorXd>(v.data(), static_cast<Eigen::Index>(v.size()));
}

}  // namespace affpcl
