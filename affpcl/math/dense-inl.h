// How dense*.cc show a matrix to Eigen.
//
// Eigen's order of summation depends on the storage order it is compiled for, and the last bits of
// every result on that order. Products and the factorisations of fit/ run on the transpose (the
// same memory, column major), those of problem/ and study/ on the rows.
#pragma once

#include <Eigen/Core>

#include "affpcl/math/dense.h"

namespace affpcl {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColMajor = Eigen::MatrixXd;

inline Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

inline Eigen::Map<const RowMajor> rows_of(MatrixView A) {
  return {A.data(), index(A.rows()), index(A.cols())};
}
inline Eigen::Map<RowMajor> rows_of(MatrixSpan A) {
  return {A.data(), index(A.rows()), index(A.cols())};
}
inline Eigen::Map<const ColMajor> transpose_of(MatrixView A) {
  return {A.data(), index(A.cols()), index(A.rows())};
}
inline Eigen::Map<ColMajor> transpose_of(MatrixSpan A) {
  return {A.data(), index(A.cols()), index(A.rows())};
}
inline Eigen::Map<RowMajor> rows_of(Matrix& A) { return rows_of(MatrixSpan(A)); }
inline Eigen::Map<ColMajor> transpose_of(Matrix& A) { return transpose_of(MatrixSpan(A)); }
inline Eigen::Map<const Eigen::VectorXd> vector_of(std::span<const double> x) {
  return {x.data(), index(x.size())};
}
inline Eigen::Map<Eigen::VectorXd> vector_of(std::span<double> x) {
  return {x.data(), index(x.size())};
}
inline Eigen::Map<Eigen::VectorXd> vector_of(Vector& x) { return {x.data(), index(x.size())}; }

}  // namespace affpcl
