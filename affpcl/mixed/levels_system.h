// The system S = I + tau^2 E in the levels of a second factor: diagonal or dense.
#pragma once

#include <cstddef>
#include <span>

#include "affpcl/math/dense.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

class LevelSystem {
 public:
  LevelSystem(std::size_t levels, bool diagonal) : levels_(levels), diagonal_(diagonal) {}

  // E of a diagonal system.
  void set(Vector E) { diagonal_E_ = std::move(E); }
  // E of a dense one, by rows: add(row run, E) adds to these rows, the same on any team.
  void set(Team& team, FunctionRef<void(Leaves, MatrixSpan)> add);

  void factor(double tau2);
  double log_determinant() const { return log_determinant_; }
  void solve(MatrixSpan rows) const;  // each row b <- S^-1 b

  void invert(Team& team);  // what follows needs it
  double inverse(std::size_t g, std::size_t h) const {
    return diagonal_ ? (g == h ? 1 / S_[g] : 0.0) : inverse_(g, h);
  }
  double information(std::size_t g) const;  // [E S^-1]_gg

 private:
  std::size_t levels_;
  bool diagonal_;
  Vector diagonal_E_, S_;  // diagonal
  Matrix E_, inverse_;     // dense
  Cholesky cholesky_;
  double log_determinant_ = 0;
};

}  // namespace affpcl
