// Factorisations of symmetric matrices.
#include <Eigen/Cholesky>

#include "affpcl/math/dense-inl.h"
#include "affpcl/math/dense.h"

namespace affpcl {

struct Cholesky::Impl {
  Eigen::LLT<ColMajor, Eigen::Lower> llt;
};
Cholesky::Cholesky() : impl_(std::make_unique<Impl>()) {}
Cholesky::Cholesky(MatrixView A) : Cholesky() { factor(A); }
Cholesky::~Cholesky() = default;
Cholesky::Cholesky(Cholesky&&) noexcept = default;
Cholesky& Cholesky::operator=(Cholesky&&) noexcept = default;
void Cholesky::factor(MatrixView A) { impl_->llt.compute(transpose_of(A)); }
void Cholesky::forward(std::span<double> b) const {
  auto x = vector_of(b);
  impl_->llt.matrixL().solveInPlace(x);
}
void Cholesky::forward(MatrixSpan rows) const {
  auto X = transpose_of(rows);
  impl_->llt.matrixL().solveInPlace(X);
}
void Cholesky::forward_ends(MatrixSpan rows) const {
  const Eigen::Index n = index(rows.cols());
  auto X = transpose_of(rows);
  impl_->llt.matrixLLT().bottomRightCorner(n, n).triangularView<Eigen::Lower>().solveInPlace(X);
}
void Cholesky::backward(MatrixSpan rows) const {
  auto X = transpose_of(rows);
  impl_->llt.matrixU().solveInPlace(X);
}
void Cholesky::solve(std::span<double> b) const {
  auto x = vector_of(b);
  impl_->llt.solveInPlace(x);
}
double Cholesky::log_determinant() const {
  const Eigen::VectorXd diagonal = impl_->llt.matrixLLT().diagonal();
  return 2 * diagonal.array().log().sum();
}
Matrix Cholesky::upper() const {
  const auto n = static_cast<std::size_t>(impl_->llt.rows());
  Matrix U(n, n);
  transpose_of(U) = impl_->llt.matrixL();
  return U;
}
void Cholesky::inverse_rows(std::size_t first, MatrixSpan rows) const {
  // The columns e_k, k >= first, of C C' X = I need the lower right corner of C alone.
  const Eigen::Index corner = impl_->llt.rows() - index(first), count = index(rows.rows());
  const auto C = impl_->llt.matrixLLT().bottomRightCorner(corner, corner);
  ColMajor X = ColMajor::Identity(corner, count);
  C.triangularView<Eigen::Lower>().solveInPlace(X);
  C.transpose().triangularView<Eigen::Upper>().solveInPlace(X);
  transpose_of(rows).bottomRows(corner) = X;
}

struct Ldlt::Impl {
  Eigen::LDLT<ColMajor> ldlt;
};
Ldlt::Ldlt(MatrixView A) : impl_(new Impl{Eigen::LDLT<ColMajor>(transpose_of(A))}) {}
Ldlt::~Ldlt() = default;
Vector Ldlt::solve(std::span<const double> b) const {
  Vector x(b.size());
  vector_of(x) = impl_->ldlt.solve(vector_of(b));
  return x;
}
Matrix Ldlt::inverse() const {
  const Eigen::Index n = impl_->ldlt.rows();
  Matrix inverse(static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  transpose_of(inverse) = impl_->ldlt.solve(ColMajor::Identity(n, n));
  return inverse;
}
Vector Ldlt::diagonal() const {
  const Eigen::VectorXd D = impl_->ldlt.vectorD();
  return {D.data(), D.data() + D.size()};
}

Vector solve_symmetric(MatrixView A, std::span<const double> b) {
  Vector x(b.size());
  vector_of(x) = rows_of(A).ldlt().solve(vector_of(b));
  return x;
}

}  // namespace affpcl
