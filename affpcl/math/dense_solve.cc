// Systems of equations: LU and QR.
#include <Eigen/LU>
#include <Eigen/QR>

#include "affpcl/math/dense-inl.h"
#include "affpcl/math/dense.h"

namespace affpcl {

struct Lu::Impl {
  Eigen::PartialPivLU<RowMajor> lu;
};
Lu::Lu() : impl_(std::make_unique<Impl>()) {}
Lu::Lu(MatrixView A) : Lu() { factor(A); }
Lu::~Lu() = default;
Lu::Lu(Lu&&) noexcept = default;
Lu& Lu::operator=(Lu&&) noexcept = default;
void Lu::factor(MatrixView A) { impl_->lu.compute(rows_of(A)); }
void Lu::solve(std::span<const double> b, std::span<double> x) const {
  vector_of(x) = impl_->lu.solve(vector_of(b));
}
double Lu::rcond() const { return impl_->lu.rcond(); }
MatrixView Lu::factors() const {
  const RowMajor& LU = impl_->lu.matrixLU();
  return {LU.data(), static_cast<std::size_t>(LU.rows()), static_cast<std::size_t>(LU.cols())};
}

Vector solve(MatrixView A, std::span<const double> b) {
  Vector x(A.cols());
  Lu(A).solve(b, x);
  return x;
}
Matrix solve_right(MatrixView B, MatrixView A) {
  Matrix X(B.rows(), A.rows());
  transpose_of(X) = transpose_of(A).partialPivLu().solve(transpose_of(B));
  return X;
}
Matrix inverse(MatrixView A) {
  Matrix inverse(A.rows(), A.cols());
  rows_of(inverse) = rows_of(A).inverse();
  return inverse;
}

std::size_t solve_full_pivoting(MatrixView A, std::span<const double> b, std::span<double> x) {
  const Eigen::FullPivLU<RowMajor> lu(rows_of(A));
  vector_of(x) = lu.solve(vector_of(b));
  return static_cast<std::size_t>(lu.rank());
}

std::size_t solve_least_squares(MatrixView A, std::span<const double> b, std::span<double> x) {
  const Eigen::ColPivHouseholderQR<RowMajor> qr(rows_of(A));
  vector_of(x) = qr.solve(vector_of(b));
  return static_cast<std::size_t>(qr.rank());
}

Vector solve_least_norm(MatrixView A, std::span<const double> b, double tolerance) {
  Eigen::CompleteOrthogonalDecomposition<RowMajor> qr(index(A.rows()), index(A.cols()));
  qr.setThreshold(tolerance);
  qr.compute(rows_of(A));
  Vector x(A.cols());
  vector_of(x) = qr.solve(vector_of(b));
  return x;
}

}  // namespace affpcl
