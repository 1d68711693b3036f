// Systems of equations: LU and QR.
#include <Eigen/LU>
#include <Eigen/QR>
#include <utility>

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

// solve() of Eigen's QR decompositions is for blocks of right-hand sides, and takes seconds to
// compile. The functions below take the same steps for one, and give the same bits.
namespace {

// The first `count` entries of R^-1 Q'b; Q is a product of `count` reflections.
Eigen::VectorXd solve_factors(const RowMajor& QR, const Eigen::VectorXd& coefficients,
                              Eigen::Index count, std::span<const double> b) {
  Eigen::VectorXd c = vector_of(b);
  double product;
  for (Eigen::Index k = 0; k < count; ++k)
    c.tail(c.size() - k)
        .applyHouseholderOnTheLeft(QR.col(k).tail(QR.rows() - k - 1), coefficients(k), &product);
  auto solution = c.head(count);
  if (count > 0)
    QR.topLeftCorner(count, count).triangularView<Eigen::Upper>().solveInPlace(solution);
  return solution;
}

}  // namespace

std::size_t solve_least_squares(MatrixView A, std::span<const double> b, std::span<double> x) {
  const Eigen::ColPivHouseholderQR<RowMajor> qr(rows_of(A));
  Eigen::VectorXd permuted = Eigen::VectorXd::Zero(qr.cols());
  const Eigen::Index pivots = qr.nonzeroPivots();
  permuted.head(pivots) = solve_factors(qr.matrixQR(), qr.hCoeffs(), pivots, b);
  vector_of(x) = qr.colsPermutation() * permuted;
  return static_cast<std::size_t>(qr.rank());
}

Vector solve_least_norm(MatrixView A, std::span<const double> b, double tolerance) {
  Eigen::CompleteOrthogonalDecomposition<RowMajor> qr(index(A.rows()), index(A.cols()));
  qr.setThreshold(tolerance);
  qr.compute(rows_of(A));
  const Eigen::Index rank = qr.rank(), dependent = qr.cols() - rank;
  Eigen::VectorXd permuted = Eigen::VectorXd::Zero(qr.cols());
  permuted.head(rank) = solve_factors(qr.matrixQTZ(), qr.hCoeffs(), rank, b);
  double product;
  for (Eigen::Index k = 0; k < rank && dependent > 0; ++k) {  // permuted <- Z' permuted
    std::swap(permuted(k), permuted(rank - 1));
    permuted.tail(dependent + 1)
        .applyHouseholderOnTheLeft(qr.matrixQTZ().row(k).tail(dependent).transpose(),
                                   qr.zCoeffs()(k), &product);
    std::swap(permuted(k), permuted(rank - 1));
  }
  Vector x(A.cols());
  vector_of(x) = qr.colsPermutation() * permuted;
  return x;
}

}  // namespace affpcl
