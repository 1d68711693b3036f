// Dense linear algebra for small matrices: products, factorisations, eigenvalues. Matrices are row
// major and plain memory. dense*.cc are the only files that include Eigen.
//
// A list of vectors (right-hand sides, eigenvectors) is the rows of a matrix, so each is a span.
// Outputs are passed where they are needed again and again; they have the right size already and
// share no memory with the inputs. Sizes are the caller's promise.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace affpcl {

using Vector = std::vector<double>;

// A matrix in memory that belongs to another object, read only.
class MatrixView {
 public:
  MatrixView(const double* data, std::size_t rows, std::size_t cols)
      : data_(data), rows_(rows), cols_(cols) {}
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  const double* data() const { return data_; }
  double operator()(std::size_t i, std::size_t j) const { return data_[i * cols_ + j]; }
  std::span<const double> row(std::size_t i) const { return {data_ + i * cols_, cols_}; }
  std::span<const double> all() const { return {data_, rows_ * cols_}; }

 private:
  const double* data_;
  std::size_t rows_, cols_;
};

// The same to write to.
class MatrixSpan {
 public:
  MatrixSpan(double* data, std::size_t rows, std::size_t cols)
      : data_(data), rows_(rows), cols_(cols) {}
  operator MatrixView() const { return {data_, rows_, cols_}; }  // NOLINT: can be read too
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  double* data() const { return data_; }
  double& operator()(std::size_t i, std::size_t j) const { return data_[i * cols_ + j]; }
  std::span<double> row(std::size_t i) const { return {data_ + i * cols_, cols_}; }
  std::span<double> all() const { return {data_, rows_ * cols_}; }

 private:
  double* data_;
  std::size_t rows_, cols_;
};

class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols) : rows_(rows), cols_(cols), data_(rows * cols) {}
  Matrix(MatrixView A)  // NOLINT: a copy
      : rows_(A.rows()), cols_(A.cols()), data_(A.all().begin(), A.all().end()) {}
  static Matrix identity(std::size_t n);

  operator MatrixView() const { return {data(), rows_, cols_}; }  // NOLINT
  operator MatrixSpan() { return {data(), rows_, cols_}; }        // NOLINT
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  double* data() { return data_.data(); }
  const double* data() const { return data_.data(); }
  double& operator()(std::size_t i, std::size_t j) { return data_[i * cols_ + j]; }
  double operator()(std::size_t i, std::size_t j) const { return data_[i * cols_ + j]; }
  std::span<double> row(std::size_t i) { return {data() + i * cols_, cols_}; }
  std::span<const double> row(std::size_t i) const { return {data() + i * cols_, cols_}; }
  // All entries, row after row.
  Vector& all() { return data_; }
  const Vector& all() const { return data_; }
  bool operator==(const Matrix&) const = default;

 private:
  std::size_t rows_ = 0, cols_ = 0;
  Vector data_;
};

// --- vectors. Sums of many terms have four running parts (Eigen's order), not one.

double sum(std::span<const double> x);
double dot(std::span<const double> x, std::span<const double> y);
double squared_norm(std::span<const double> x);
double norm(std::span<const double> x);
void exponentials(std::span<double> x);  // x_i <- exp(x_i)
void logarithms(std::span<double> x);    // x_i <- log(x_i)

// --- products

struct Transposed {  // says so in a product; nothing is moved
  MatrixView of;
};
inline Transposed transposed(MatrixView A) { return {A}; }

void multiply(MatrixView A, MatrixView B, MatrixSpan C);  // C = A B
void multiply(Transposed A, MatrixView B, MatrixSpan C);  // C = A'B
void multiply(MatrixView A, Transposed B, MatrixSpan C);  // C = A B'
void multiply(Transposed A, Transposed B, MatrixSpan C);  // C = A'B'
Matrix multiply(MatrixView A, MatrixView B);
Matrix multiply(Transposed A, MatrixView B);
Matrix multiply(MatrixView A, Transposed B);
Matrix multiply(Transposed A, Transposed B);

void multiply(MatrixView A, std::span<const double> x, std::span<double> y);  // y = A x
void multiply(Transposed A, std::span<const double> x, std::span<double> y);  // y = A'x
Vector multiply(MatrixView A, std::span<const double> x);
Vector multiply(Transposed A, std::span<const double> x);

void add_product(double alpha, MatrixView A, MatrixView B, MatrixSpan C);  // C += alpha A B
void add_product(double alpha, MatrixView A, Transposed B, MatrixSpan C);  // C += alpha A B'
void add_product(double alpha, Transposed A, std::span<const double> x,
                 std::span<double> y);                    // y += alpha A'x
void add_gram(double alpha, MatrixView A, MatrixSpan S);  // S += alpha A A', S symmetric

Vector column_sums(MatrixView A);
void column_dots(MatrixView A, MatrixView B, std::span<double> out);  // sum_i A_ij B_ij, by j
double trace(MatrixView A);
Matrix transpose(MatrixView A);
void symmetrise(MatrixSpan A);  // A <- (A + A') / 2

// --- square systems

// P A = L U with partial pivoting. Memory is kept from one matrix to the next.
class Lu {
 public:
  Lu();
  explicit Lu(MatrixView A);
  ~Lu();
  Lu(Lu&&) noexcept;
  Lu& operator=(Lu&&) noexcept;
  void factor(MatrixView A);
  void solve(std::span<const double> b, std::span<double> x) const;
  double rcond() const;        // an estimate of 1 / (|A| |A^-1|) in the 1-norm
  MatrixView factors() const;  // L below the diagonal, its ones left out; U above and on it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Vector solve(MatrixView A, std::span<const double> b);  // A x = b
Matrix solve_right(MatrixView B, MatrixView A);         // X A = B
Matrix inverse(MatrixView A);
Vector solve_symmetric(MatrixView A, std::span<const double> b);  // A symmetric, by L D L'

// A x = b by full pivoting; of a singular system one of the solutions, if it has any. Returns the
// rank: pivots below eps * n times the largest count as 0.
std::size_t solve_full_pivoting(MatrixView A, std::span<const double> b, std::span<double> x);

// --- systems of any shape

// argmin_x |A x - b| by QR with column pivoting. Returns the rank: columns whose part outside those
// before is below eps * min(rows, cols) times the largest count as dependent.
std::size_t solve_least_squares(MatrixView A, std::span<const double> b, std::span<double> x);

// The shortest of all x that minimise |A x - b|, A^+ b (complete orthogonal decomposition). Pivots
// below `tolerance` times the largest count as 0.
Vector solve_least_norm(MatrixView A, std::span<const double> b, double tolerance = 1e-12);

// --- symmetric matrices. One triangle is read.

// A = C C' with C lower triangular, for positive definite A. Memory is kept.
class Cholesky {
 public:
  Cholesky();
  explicit Cholesky(MatrixView A);
  ~Cholesky();
  Cholesky(Cholesky&&) noexcept;
  Cholesky& operator=(Cholesky&&) noexcept;
  void factor(MatrixView A);
  void forward(std::span<double> b) const;  // b <- C^-1 b
  void forward(MatrixSpan rows) const;      // of each row
  // The same of rows whose first entries are 0, as many as they are shorter.
  void forward_ends(MatrixSpan rows) const;
  void backward(MatrixSpan rows) const;   // each row b <- C'^-1 b
  void solve(std::span<double> b) const;  // b <- A^-1 b
  double log_determinant() const;
  Matrix upper() const;  // C'
  // Rows from `first` on of A^-1, their entries from column `first` on: A^-1 is symmetric, and what
  // comes before belongs to the rows before.
  void inverse_rows(std::size_t first, MatrixSpan rows) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A = P'L D L'P, for any symmetric A.
class Ldlt {
 public:
  explicit Ldlt(MatrixView A);
  ~Ldlt();
  Vector solve(std::span<const double> b) const;
  Matrix inverse() const;
  Vector diagonal() const;  // D

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct SymmetricEigen {
  Vector values;   // ascending
  Matrix vectors;  // row k is that of values[k]
};
SymmetricEigen symmetric_eigen(MatrixView A);
Vector symmetric_eigenvalues(MatrixView A);  // ascending
// R with R'R = A, for positive semidefinite A: eigenvalues that rounding left below 0 count as 0.
Matrix semidefinite_root(MatrixView A);

// --- norms and spectra

double operator_norm(MatrixView A);    // the largest singular value
Matrix modulus(MatrixView A);          // (A'A)^1/2
double spectral_radius(MatrixView A);  // the largest |eigenvalue|

}  // namespace affpcl
