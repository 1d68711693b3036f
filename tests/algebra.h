// Vectors and matrices as tests write them: x + y, 2 * A, A * x. Plain and slow; what is solved or
// decomposed is solved by math/dense, which has tests of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "affpcl/math/dense.h"

namespace affpcl {

// --- vectors

inline Vector& operator+=(Vector& x, std::span<const double> y) {
  for (std::size_t r = 0; r < x.size(); ++r) x[r] += y[r];
  return x;
}
inline Vector& operator-=(Vector& x, std::span<const double> y) {
  for (std::size_t r = 0; r < x.size(); ++r) x[r] -= y[r];
  return x;
}
inline Vector& operator*=(Vector& x, double factor) {
  for (double& v : x) v *= factor;
  return x;
}
inline Vector& operator/=(Vector& x, double by) {
  for (double& v : x) v /= by;
  return x;
}
inline Vector operator+(Vector x, const Vector& y) { return std::move(x += y); }
inline Vector operator-(Vector x, const Vector& y) { return std::move(x -= y); }
inline Vector operator*(double factor, Vector x) { return std::move(x *= factor); }
inline Vector operator*(Vector x, double factor) { return std::move(x *= factor); }
inline Vector operator/(Vector x, double by) { return std::move(x /= by); }

inline Vector times(Vector x, const Vector& y) {  // entry by entry
  for (std::size_t r = 0; r < x.size(); ++r) x[r] *= y[r];
  return x;
}
inline double largest(std::span<const double> x) {  // max |x_r|
  double most = 0;
  for (double v : x) most = std::isnan(v) ? v : std::max(most, std::abs(v));
  return most;
}
inline double one_norm(std::span<const double> x) {
  double total = 0;
  for (double v : x) total += std::abs(v);
  return total;
}
inline Vector unit(std::size_t size, std::size_t r) {
  Vector x(size);
  x[r] = 1;
  return x;
}
inline Vector part(std::span<const double> x, std::size_t first, std::size_t count) {
  const auto piece = x.subspan(first, count);
  return {piece.begin(), piece.end()};
}
inline Vector numbers(const double* first, std::size_t count) {
  return part({first, count}, 0, count);
}
inline Vector stack(std::initializer_list<Vector> parts) {
  Vector all;
  for (const Vector& x : parts) all.insert(all.end(), x.begin(), x.end());
  return all;
}

// --- matrices

inline Matrix& operator+=(Matrix& A, const Matrix& B) { return A.all() += B.all(), A; }
inline Matrix& operator-=(Matrix& A, const Matrix& B) { return A.all() -= B.all(), A; }
inline Matrix& operator*=(Matrix& A, double factor) { return A.all() *= factor, A; }
inline Matrix& operator/=(Matrix& A, double by) { return A.all() /= by, A; }
inline Matrix operator+(Matrix A, const Matrix& B) { return std::move(A += B); }
inline Matrix operator-(Matrix A, const Matrix& B) { return std::move(A -= B); }
inline Matrix operator*(double factor, Matrix A) { return std::move(A *= factor); }
inline Matrix operator/(Matrix A, double by) { return std::move(A /= by); }
inline Matrix operator*(const Matrix& A, const Matrix& B) { return multiply(A, B); }
inline Vector operator*(const Matrix& A, const Vector& x) { return multiply(A, x); }

inline Matrix matrix(std::size_t rows, std::size_t cols, std::initializer_list<double> entries) {
  return MatrixView(entries.begin(), rows, cols);
}
inline Matrix outer(const Vector& x, const Vector& y) {  // x y'
  return multiply(MatrixView(x.data(), x.size(), 1), MatrixView(y.data(), 1, y.size()));
}
inline Matrix diagonal(const Vector& x) {
  Matrix D(x.size(), x.size());
  for (std::size_t r = 0; r < x.size(); ++r) D(r, r) = x[r];
  return D;
}
inline Vector row(const Matrix& A, std::size_t i) { return part(A.row(i), 0, A.cols()); }
inline Vector column(const Matrix& A, std::size_t j) {
  Vector x(A.rows());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = A(i, j);
  return x;
}
inline void set_row(Matrix& A, std::size_t i, const Vector& x) {
  for (std::size_t j = 0; j < x.size(); ++j) A(i, j) = x[j];
}
inline void set_column(Matrix& A, std::size_t j, const Vector& x) {
  for (std::size_t i = 0; i < x.size(); ++i) A(i, j) = x[i];
}
// A(r.., c..) += factor B
inline void add_block(Matrix& A, std::size_t r, std::size_t c, double factor, const Matrix& B) {
  for (std::size_t i = 0; i < B.rows(); ++i)
    for (std::size_t j = 0; j < B.cols(); ++j) A(r + i, c + j) += factor * B(i, j);
}
// The smallest eigenvalue of (A + A') / 2.
inline double smallest_symmetric(Matrix A) {
  symmetrise(A);
  return symmetric_eigenvalues(A)[0];
}

}  // namespace affpcl
