#include "affpcl/math/dense.h"

#include <algorithm>

#include "affpcl/math/dense-inl.h"
#include "affpcl/math/products.h"

namespace affpcl {

Matrix Matrix::identity(std::size_t n) {
  Matrix I(n, n);
  for (std::size_t i = 0; i < n; ++i) I(i, i) = 1;
  return I;
}

double sum(std::span<const double> x) { return vector_of(x).sum(); }
double dot(std::span<const double> x, std::span<const double> y) {
  return vector_of(x).dot(vector_of(y));
}
double squared_norm(std::span<const double> x) { return vector_of(x).squaredNorm(); }
double norm(std::span<const double> x) { return vector_of(x).norm(); }
void exponentials(std::span<double> x) { vector_of(x) = vector_of(x).array().exp().matrix(); }
void logarithms(std::span<double> x) { vector_of(x) = vector_of(x).array().log().matrix(); }

namespace {

kernels::Strided strided(MatrixView A) {
  return {A.data(), static_cast<std::ptrdiff_t>(A.cols()), 1};
}
kernels::Strided strided(Transposed A) {
  return {A.of.data(), 1, static_cast<std::ptrdiff_t>(A.of.cols())};
}
std::size_t inner(MatrixView A) { return A.cols(); }
std::size_t inner(Transposed A) { return A.of.rows(); }

// C = alpha A B, or C += alpha A B.
template <class A, class B>
void product(double alpha, A a, B b, bool add, MatrixSpan C) {
  kernels::product(alpha, strided(a), strided(b), C.rows(), C.cols(), inner(a), add, C.data());
}

}  // namespace

void multiply(MatrixView A, MatrixView B, MatrixSpan C) { product(1, A, B, false, C); }
void multiply(Transposed A, MatrixView B, MatrixSpan C) { product(1, A, B, false, C); }
void multiply(MatrixView A, Transposed B, MatrixSpan C) { product(1, A, B, false, C); }
void multiply(Transposed A, Transposed B, MatrixSpan C) { product(1, A, B, false, C); }
Matrix multiply(MatrixView A, MatrixView B) {
  Matrix C(A.rows(), B.cols());
  multiply(A, B, C);
  return C;
}
Matrix multiply(Transposed A, MatrixView B) {
  Matrix C(A.of.cols(), B.cols());
  multiply(A, B, C);
  return C;
}
Matrix multiply(MatrixView A, Transposed B) {
  Matrix C(A.rows(), B.of.rows());
  multiply(A, B, C);
  return C;
}

Matrix multiply(Transposed A, Transposed B) {
  Matrix C(A.of.cols(), B.of.rows());
  multiply(A, B, C);
  return C;
}

void multiply(MatrixView A, std::span<const double> x, std::span<double> y) {
  kernels::times_column(A.data(), x.data(), A.rows(), A.cols(), y.data());
}
void multiply(Transposed A, std::span<const double> x, std::span<double> y) {
  kernels::times_row(1, A.of.data(), x.data(), A.of.rows(), A.of.cols(), false, y.data());
}
Vector multiply(MatrixView A, std::span<const double> x) {
  Vector y(A.rows());
  multiply(A, x, y);
  return y;
}
Vector multiply(Transposed A, std::span<const double> x) {
  Vector y(A.of.cols());
  multiply(A, x, y);
  return y;
}

void add_product(double alpha, MatrixView A, MatrixView B, MatrixSpan C) {
  product(alpha, A, B, true, C);
}
void add_product(double alpha, MatrixView A, Transposed B, MatrixSpan C) {
  product(alpha, A, B, true, C);
}
void add_product(double alpha, Transposed A, std::span<const double> x, std::span<double> y) {
  kernels::times_row(alpha, A.of.data(), x.data(), A.of.rows(), A.of.cols(), true, y.data());
}
void add_gram(double alpha, MatrixView A, MatrixSpan S) {
  kernels::add_gram(alpha, A.data(), A.rows(), A.cols(), S.data());
}

Vector column_sums(MatrixView A) {
  Vector sums(A.cols());
  vector_of(sums) = transpose_of(A).rowwise().sum();
  return sums;
}
void column_dots(MatrixView A, MatrixView B, std::span<double> out) {
  vector_of(out) = transpose_of(A).cwiseProduct(transpose_of(B)).rowwise().sum();
}
double trace(MatrixView A) {
  double sum = 0;
  for (std::size_t i = 0; i < A.rows(); ++i) sum += A(i, i);
  return sum;
}
Matrix transpose(MatrixView A) {
  Matrix T(A.cols(), A.rows());
  for (std::size_t i = 0; i < A.rows(); ++i)
    for (std::size_t j = 0; j < A.cols(); ++j) T(j, i) = A(i, j);
  return T;
}
void symmetrise(MatrixSpan A) {
  for (std::size_t i = 0; i < A.rows(); ++i)
    for (std::size_t j = 0; j < i; ++j) A(i, j) = A(j, i) = (A(i, j) + A(j, i)) / 2;
}

}  // namespace affpcl
