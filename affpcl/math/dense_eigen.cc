// Eigenvalues.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "affpcl/math/dense-inl.h"
#include "affpcl/math/dense.h"

namespace affpcl {

SymmetricEigen symmetric_eigen(MatrixView A) {
  if (A.rows() == 0) return {};  // a model of an intercept alone has no slopes
  const Eigen::SelfAdjointEigenSolver<ColMajor> eigen(transpose_of(A));
  SymmetricEigen result{Vector(A.rows()), Matrix(A.rows(), A.cols())};
  vector_of(result.values) = eigen.eigenvalues();
  transpose_of(result.vectors) = eigen.eigenvectors();
  return result;
}

Vector symmetric_eigenvalues(MatrixView A) {
  Vector values(A.rows());
  vector_of(values) =
      Eigen::SelfAdjointEigenSolver<RowMajor>(rows_of(A), Eigen::EigenvaluesOnly).eigenvalues();
  return values;
}

Matrix semidefinite_root(MatrixView A) {
  SymmetricEigen eigen = symmetric_eigen(A);
  for (std::size_t k = 0; k < A.rows(); ++k)
    for (double& v : eigen.vectors.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  return std::move(eigen.vectors);
}

double operator_norm(MatrixView A) { return rows_of(A).operatorNorm(); }

Matrix modulus(MatrixView A) {
  // Rounding may leave eigenvalues of a singular A'A below 0.
  const Eigen::SelfAdjointEigenSolver<RowMajor> eigen(rows_of(A).transpose() * rows_of(A));
  Matrix root(A.cols(), A.cols());
  rows_of(root) = eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() *
                  eigen.eigenvectors().transpose();
  return root;
}

double spectral_radius(MatrixView A) { return rows_of(A).eigenvalues().cwiseAbs().maxCoeff(); }

}  // namespace affpcl
