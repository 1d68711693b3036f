// Small algebra of the files in this folder. Not installed.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/table/moments.h"

namespace affpcl::mixed {

inline MatrixView A_of(const Moments& m, std::size_t i) {
  return {m.A.data() + m.at(i) * m.d * m.d, m.d, m.d};
}
inline std::span<const double> b_of(const Moments& m, std::size_t i) {
  return {m.b.data() + m.at(i) * m.d, m.d};
}

inline MatrixView as_matrix(const std::vector<double>& D, std::size_t d) {
  return {D.data(), d, d};
}

inline Vector diagonal_of(MatrixView A) {
  Vector diagonal(A.rows());
  for (std::size_t j = 0; j < diagonal.size(); ++j) diagonal[j] = A(j, j);
  return diagonal;
}
inline void add_to_diagonal(double number, MatrixSpan A) {
  for (std::size_t j = 0; j < A.rows(); ++j) A(j, j) += number;
}
inline bool is_diagonal(MatrixView A) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k)
      if (j != k && A(j, k) != 0) return false;
  return true;
}
inline void add(std::span<const double> x, std::span<double> to) {
  for (std::size_t j = 0; j < to.size(); ++j) to[j] += x[j];
}
inline void divide(std::span<double> x, double by) {
  for (double& v : x) v /= by;
}
// diag(scale) A diag(scale)
inline void rescale(MatrixSpan A, const Vector& scale) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k) A(j, k) = scale[k] * A(j, k) * scale[j];
}

// L' with D = L L'; zero rows where D has no variance.
inline Matrix root_of(MatrixView D, bool diagonal) {
  if (!diagonal) return semidefinite_root(D);
  Matrix root(D.rows(), D.cols());
  for (std::size_t j = 0; j < D.rows(); ++j) root(j, j) = std::sqrt(std::max(D(j, j), 0.0));
  return root;
}

}  // namespace affpcl::mixed
