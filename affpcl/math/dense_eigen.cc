// Eigenvalues.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/math/dense-inl.h"
#include "affpcl/math/dense.h"

namespace affpcl {

// One solver for all of them: each takes seconds to compile.
using Solver = Eigen::SelfAdjointEigenSolver<ColMajor>;

SymmetricEigen symmetric_eigen(MatrixView A) {
  if (A.rows() == 0) return {};  // a model of an intercept alone has no slopes
  const Solver eigen(transpose_of(A));
  SymmetricEigen result{Vector(A.rows()), Matrix(A.rows(), A.cols())};
  vector_of(result.values) = eigen.eigenvalues();
  transpose_of(result.vectors) = eigen.eigenvectors();
  return result;
}

Vector symmetric_eigenvalues(MatrixView A) {
  Vector values(A.rows());
  vector_of(values) = Solver(transpose_of(A), Eigen::EigenvaluesOnly).eigenvalues();
  return values;
}

Matrix semidefinite_root(MatrixView A) {
  SymmetricEigen eigen = symmetric_eigen(A);
  for (std::size_t k = 0; k < A.rows(); ++k)
    for (double& v : eigen.vectors.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  return std::move(eigen.vectors);
}

double operator_norm(MatrixView A) {
  return std::sqrt(std::max(symmetric_eigenvalues(multiply(transposed(A), A)).back(), 0.0));
}

Matrix modulus(MatrixView A) {
  const SymmetricEigen eigen = symmetric_eigen(multiply(transposed(A), A));
  Matrix scaled = eigen.vectors;
  for (std::size_t k = 0; k < scaled.rows(); ++k)  // rounding may leave values below 0
    for (double& v : scaled.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  return multiply(transposed(eigen.vectors), scaled);
}

double spectral_radius(MatrixView A) {
  if (!std::isfinite(sum(A.all()))) return std::numeric_limits<double>::infinity();
  // The Schur form has eigenvalues on its diagonal, or blocks of 2 x 2 with a conjugate pair, whose
  // squared modulus is their determinant.
  const Eigen::RealSchur<ColMajor> schur(transpose_of(A), false);
  if (schur.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  const ColMajor& T = schur.matrixT();
  double radius = 0;
  for (Eigen::Index k = 0; k < T.rows(); ++k) {
    const bool pair = k + 1 < T.rows() && T(k + 1, k) != 0;
    radius = std::max(radius, pair ? std::sqrt(std::abs(T(k, k) * T(k + 1, k + 1) -
                                                        T(k, k + 1) * T(k + 1, k)))
                                   : std::abs(T(k, k)));
    if (pair) ++k;
  }
  return radius;
}

}  // namespace affpcl
