#include "affpcl/math/dense.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

Matrix matrix(std::size_t rows, std::size_t cols, std::initializer_list<double> entries) {
  return MatrixView(entries.begin(), rows, cols);
}

void expect_near(std::span<const double> got, std::span<const double> want, double by = 1e-14) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], by) << "entry " << i;
}

// Entries that no two positions share, so that a swapped index shows.
Matrix numbered(std::size_t rows, std::size_t cols) {
  Matrix A(rows, cols);
  for (std::size_t i = 0; i < A.all().size(); ++i)
    A.all()[i] = std::sin(3.0 + 1.7 * static_cast<double>(i));
  return A;
}

Matrix product_by_hand(MatrixView A, MatrixView B) {
  Matrix C(A.rows(), B.cols());
  for (std::size_t i = 0; i < A.rows(); ++i)
    for (std::size_t j = 0; j < B.cols(); ++j)
      for (std::size_t k = 0; k < A.cols(); ++k) C(i, j) += A(i, k) * B(k, j);
  return C;
}

Matrix turned(MatrixView A) { return transpose(A); }

TEST(Dense, ProductsOfAllShapesAreThoseByHandWithEveryInstructionSet) {
  const std::string before = instruction_set();
  for (const std::string& set : available_instruction_sets()) {
    use_instruction_set(set);
    for (const std::size_t m : {1, 3, 4, 9, 21})
      for (const std::size_t n : {1, 2, 7, 8, 13, 33})
        for (const std::size_t k : {0, 1, 2, 8, 19, 300}) {
          SCOPED_TRACE(testing::Message() << set << ": " << m << " x " << n << " by " << k);
          const Matrix A = numbered(m, k), B = numbered(k, n), want = product_by_hand(A, B);
          const Matrix At = turned(A), Bt = turned(B);
          expect_near(multiply(A, B).all(), want.all(), 1e-12);
          expect_near(multiply(transposed(At), B).all(), want.all(), 1e-12);
          expect_near(multiply(A, transposed(Bt)).all(), want.all(), 1e-12);
          expect_near(multiply(transposed(At), transposed(Bt)).all(), want.all(), 1e-12);
          Matrix more = numbered(m, n), less = more;
          add_product(-2, A, B, more);
          add_product(-2, A, transposed(Bt), less);
          const Matrix start = numbered(m, n);
          for (std::size_t j = 0; j < m * n; ++j) {
            EXPECT_NEAR(more.all()[j], start.all()[j] - 2 * want.all()[j], 1e-12);
            EXPECT_NEAR(less.all()[j], start.all()[j] - 2 * want.all()[j], 1e-12);
          }
        }
  }
  use_instruction_set(before);
}

TEST(Dense, EigenvectorsRebuildTheirMatrixAndAreOrthogonalAtAllSizes) {
  const std::string before = instruction_set();
  for (const std::string& set : available_instruction_sets()) {
    use_instruction_set(set);
    for (const std::size_t n : {1, 2, 3, 8, 17, 64}) {
      for (const std::size_t rank : {n, n / 2, std::size_t{0}}) {
        SCOPED_TRACE(testing::Message() << set << ": " << n << " of rank " << rank);
        Matrix A(n, n);
        add_gram(1, rank > 0 ? numbered(n, rank) : Matrix(n, 1), A);
        const double size = std::max(trace(A), 1.0);
        const SymmetricEigen eigen = symmetric_eigen(A);
        EXPECT_TRUE(std::is_sorted(eigen.values.begin(), eigen.values.end()));
        Matrix scaled = eigen.vectors;
        for (std::size_t k = 0; k < n; ++k)
          for (double& v : scaled.row(k)) v *= eigen.values[k];
        expect_near(multiply(transposed(eigen.vectors), scaled).all(), A.all(), 1e-13 * size);
        expect_near(multiply(eigen.vectors, transposed(eigen.vectors)).all(),
                    Matrix::identity(n).all(), 1e-13);
        expect_near(symmetric_eigenvalues(A), eigen.values, 1e-13 * size);
        EXPECT_NEAR(sum(eigen.values), trace(A), 1e-13 * size);
      }
    }
  }
  use_instruction_set(before);
}

TEST(Dense, EigenvaluesOfDiagonalAndOfUnevenMatricesAreExact) {
  const SymmetricEigen eigen = symmetric_eigen(matrix(3, 3, {1e-100, 0, 0, 0, 3e150, 0, 0, 0, -2}));
  EXPECT_EQ(eigen.values, (Vector{-2, 1e-100, 3e150}));
  const Vector equal = symmetric_eigenvalues(matrix(2, 2, {1e-300, 0, 0, 1e-300}));
  EXPECT_EQ(equal, (Vector{1e-300, 1e-300}));
  const Vector pair = symmetric_eigenvalues(matrix(2, 2, {0, 1, 1, 0}));
  expect_near(pair, Vector{-1, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum(symmetric_eigenvalues(matrix(2, 2, {nan, nan, nan, nan})))));
}

TEST(Dense, GramsAndColumnsOfAllShapesAreThoseByHandWithEveryInstructionSet) {
  const std::string before = instruction_set();
  for (const std::string& set : available_instruction_sets()) {
    use_instruction_set(set);
    for (const std::size_t n : {1, 3, 4, 9, 21, 37})
      for (const std::size_t k : {1, 2, 8, 19, 300}) {
        SCOPED_TRACE(testing::Message() << set << ": " << n << " by " << k);
        const Matrix A = numbered(n, k), square = product_by_hand(A, turned(A));
        Matrix S = Matrix::identity(n);
        add_gram(3, A, S);
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            EXPECT_NEAR(S(i, j), (i == j ? 1 : 0) + 3 * square(i, j), 1e-11);
            EXPECT_EQ(S(i, j), S(j, i));
          }
        const Matrix x = numbered(k, 1), y = numbered(1, n);
        expect_near(multiply(A, x.all()), product_by_hand(A, x).all(), 1e-12);
        const Matrix want = product_by_hand(y, A);
        expect_near(multiply(transposed(A), y.all()), want.all(), 1e-12);
        Vector sum(k, 1.0);
        add_product(-1, transposed(A), y.all(), sum);
        for (std::size_t j = 0; j < k; ++j) EXPECT_NEAR(sum[j], 1 - want.all()[j], 1e-12);
      }
  }
  use_instruction_set(before);
}

TEST(Dense, MatricesAreRowMajorAndViewsShareTheirMemory) {
  Matrix A = matrix(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(A(0, 2), 3);
  EXPECT_EQ(A(1, 0), 4);
  EXPECT_EQ(A.row(1)[2], 6);
  EXPECT_EQ(A.all(), (Vector{1, 2, 3, 4, 5, 6}));
  const MatrixSpan span = A;
  span(1, 1) = 7;
  span.row(0)[0] = 8;
  EXPECT_EQ(A.all(), (Vector{8, 2, 3, 4, 7, 6}));
  const MatrixView view = span;
  EXPECT_EQ(view(1, 1), 7);
  EXPECT_EQ(view.data(), A.data());
  const Matrix copy = view;
  EXPECT_EQ(copy, A);
  EXPECT_NE(copy.data(), A.data());
  EXPECT_EQ(Matrix(2, 2).all(), Vector(4));
  EXPECT_EQ(Matrix::identity(2).all(), (Vector{1, 0, 0, 1}));
  EXPECT_EQ(transpose(A), matrix(3, 2, {8, 4, 2, 7, 3, 6}));
  EXPECT_NE(Matrix(2, 3), Matrix(3, 2));
}

TEST(Dense, SumsOfVectors) {
  EXPECT_EQ(sum(Vector{1, 2, 3, 4, 5, 6, 7}), 28);
  EXPECT_EQ(sum(Vector{}), 0);
  EXPECT_EQ(dot(Vector{1, 2, 3}, Vector{4, 5, 6}), 32);
  EXPECT_EQ(squared_norm(Vector{2, 3, 6}), 49);
  EXPECT_EQ(norm(Vector{2, 3, 6}), 7);
}

TEST(Dense, ExponentialsAndLogarithms) {
  Vector x{0, 1, -700, 3.5, 20};
  exponentials(x);
  const double want[] = {1, std::exp(1.0), std::exp(-700.0), std::exp(3.5), std::exp(20.0)};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i] / want[i], 1, 1e-15);
  logarithms(x);
  expect_near(x, Vector{0, 1, -700, 3.5, 20}, 1e-13);
  Vector zero{0, 0, 1};
  logarithms(zero);
  EXPECT_EQ(zero, (Vector{-HUGE_VAL, -HUGE_VAL, 0}));
}

TEST(Dense, ProductsOfEveryShape) {
  for (std::size_t m : {1u, 2u, 5u, 17u})
    for (std::size_t k : {1u, 3u, 8u, 30u})
      for (std::size_t n : {1u, 2u, 7u, 19u}) {
        const Matrix A = numbered(m, k), B = numbered(k, n), AB = product_by_hand(A, B);
        expect_near(multiply(A, B).all(), AB.all(), 1e-13);
        expect_near(multiply(transposed(transpose(A)), B).all(), AB.all(), 1e-13);
        expect_near(multiply(A, transposed(transpose(B))).all(), AB.all(), 1e-13);
        expect_near(multiply(transposed(transpose(A)), transposed(transpose(B))).all(), AB.all(),
                    1e-13);
        Matrix C(m, n);
        for (double& c : C.all()) c = 1;
        add_product(-2, A, B, C);
        Vector want = AB.all();
        for (double& w : want) w = 1 - 2 * w;
        expect_near(C.all(), want, 1e-13);
      }
}

TEST(Dense, ProductsWithVectors) {
  const Matrix A = matrix(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(multiply(A, Vector{1, 0, -1}), (Vector{-2, -2}));
  EXPECT_EQ(multiply(transposed(A), Vector{1, -1}), (Vector{-3, -3, -3}));
  Vector y{10, 20, 30};
  add_product(2, transposed(A), Vector{1, -1}, y);
  EXPECT_EQ(y, (Vector{4, 14, 24}));
  EXPECT_EQ(column_sums(A), (Vector{5, 7, 9}));
  Vector dots(3);
  column_dots(A, matrix(2, 3, {1, 1, 1, 0, 2, 0}), dots);
  EXPECT_EQ(dots, (Vector{1, 12, 3}));
}

TEST(Dense, GramsAreSymmetricAndAdded) {
  Matrix S = matrix(2, 2, {1, 5, 5, 1});
  add_gram(2, matrix(2, 3, {1, 2, 3, 4, 5, 6}), S);  // A A' = 14 32 32 77
  EXPECT_EQ(S, matrix(2, 2, {29, 69, 69, 155}));
  Matrix A = matrix(3, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(trace(A), 15);
  symmetrise(A);
  EXPECT_EQ(A, matrix(3, 3, {1, 3, 5, 3, 5, 7, 5, 7, 9}));
}

TEST(Dense, SquareSystems) {
  const Vector b{5, 10}, x{1, 3};
  const Matrix A = matrix(2, 2, {2, 1, 1, 3});
  expect_near(solve(A, b), x);
  expect_near(solve(matrix(2, 2, {0, 1, 1, 0}), b), Vector{10, 5});  // needs a pivot
  expect_near(solve_symmetric(A, b), x);
  Vector got(2);
  EXPECT_EQ(solve_full_pivoting(A, b, got), 2u);
  expect_near(got, x);
  expect_near(inverse(matrix(2, 2, {1, 2, 3, 4})).all(), Vector{-2, 1, 1.5, -0.5});
  // X A = B with A not symmetric: [1 2] [1 2; 3 4] = [7 10]
  expect_near(solve_right(matrix(1, 2, {7, 10}), matrix(2, 2, {1, 2, 3, 4})).all(), Vector{1, 2});
  const Matrix B = matrix(3, 3, {4, -2, 1, -2, 4, -2, 1, -2, 4});
  expect_near(solve(B, Vector{11, -16, 17}), Vector{1, -2, 3});
}

TEST(Dense, LuIsUsedAgainAndSaysHowNearItIsToSingular) {
  Lu lu(matrix(2, 2, {1, 2, 4, 3}));
  Vector x(2);
  lu.solve(Vector{5, 10}, x);
  expect_near(x, Vector{1, 2});
  EXPECT_NEAR(lu.rcond(), 5.0 / (5 * 7), 1e-14);                      // |A|_1 = 5, |A^-1|_1 = 7 / 5
  EXPECT_EQ(Matrix(lu.factors()), matrix(2, 2, {4, 3, 0.25, 1.25}));  // rows swapped
  lu.factor(matrix(3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1e-20}));
  Vector y(3);
  lu.solve(Vector{1, 2, 3}, y);
  expect_near(y, Vector{1, 2, 3e20}, 1e6);
  EXPECT_LT(lu.rcond(), 1e-19);
}

TEST(Dense, SingularSystemsHaveTheirRank) {
  const Matrix A = matrix(2, 2, {1, 2, 2, 4});
  Vector x(2);
  EXPECT_EQ(solve_full_pivoting(A, Vector{5, 10}, x), 1u);
  expect_near(multiply(A, x), Vector{5, 10});
  EXPECT_EQ(solve_full_pivoting(Matrix(2, 2), Vector{0, 0}, x), 0u);
  EXPECT_EQ(solve_least_squares(matrix(3, 2, {1, 2, 2, 4, 3, 6}), Vector{1, 2, 3}, x), 1u);
}

TEST(Dense, LeastSquares) {  // the line through (0, 1), (1, 2), (2, 4): 5/6 + 3/2 t
  Vector x(2);
  EXPECT_EQ(solve_least_squares(matrix(3, 2, {1, 0, 1, 1, 1, 2}), Vector{1, 2, 4}, x), 2u);
  expect_near(x, Vector{5.0 / 6, 1.5});
}

TEST(Dense, LeastNorm) {
  // One equation x + 2y = 5: the shortest solution is (1, 2).
  expect_near(solve_least_norm(matrix(1, 2, {1, 2}), Vector{5}), Vector{1, 2});
  // Of rank one, and no solution: A = u v' with u = (1, 2), v = (1, 1), b = (3, 1). The best
  // coefficient of u is u'b / u'u = 1; the shortest x with v'x = 1 is (1/2, 1/2).
  expect_near(solve_least_norm(matrix(2, 2, {1, 1, 2, 2}), Vector{3, 1}), Vector{0.5, 0.5});
  // Regular systems have one solution, the zero matrix the shortest of all.
  expect_near(solve_least_norm(matrix(2, 2, {2, 1, 1, 3}), Vector{5, 10}), Vector{1, 3});
  expect_near(solve_least_norm(Matrix(2, 3), Vector{1, 1}), Vector{0, 0, 0});
  // What counts as 0 is the caller's choice.
  const Matrix nearly = matrix(2, 2, {1, 0, 0, 1e-8});
  expect_near(solve_least_norm(nearly, Vector{1, 1}), Vector{1, 1e8}, 1e-6);
  expect_near(solve_least_norm(nearly, Vector{1, 1}, 1e-6), Vector{1, 0});
  expect_near(solve_least_norm(matrix(2, 2, {1, 0, 0, 1e-13}), Vector{1, 1}), Vector{1, 0});
}

TEST(Dense, CholeskyOfAThreeByThree) {
  // The textbook's: C = 2 0 0; 6 1 0; -8 5 3.
  const Matrix A = matrix(3, 3, {4, 12, -16, 12, 37, -43, -16, -43, 98});
  Cholesky cholesky(matrix(1, 1, {9}));
  EXPECT_EQ(cholesky.upper().all(), Vector{3});
  cholesky.factor(A);
  EXPECT_EQ(cholesky.upper(), matrix(3, 3, {2, 6, -8, 0, 1, 5, 0, 0, 3}));
  EXPECT_NEAR(cholesky.log_determinant(), std::log(36.0), 1e-14);
  Vector b{2, 7, 0};  // C (1, 1, 1)
  cholesky.forward(b);
  expect_near(b, Vector{1, 1, 1});
  Matrix rows = matrix(2, 3, {2, 7, 0, 0, 1, 5});
  cholesky.forward(rows);
  expect_near(rows.all(), Vector{1, 1, 1, 0, 1, 0});
  rows = matrix(2, 3, {-2, 6, 3, 2, 0, 0});  // C' (0, 1, 1) and C' (1, 0, 0)
  cholesky.backward(rows);
  expect_near(rows.all(), Vector{0, 1, 1, 1, 0, 0});
  Vector c = multiply(A, Vector{1, -2, 3});
  cholesky.solve(c);
  expect_near(c, Vector{1, -2, 3}, 1e-11);
  const Matrix whole = inverse(A);
  Matrix last(2, 3);  // rows 1 and 2 of the inverse, from column 1 on
  cholesky.inverse_rows(1, last);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(last(i, 0), 0);
    for (std::size_t j = 1; j < 3; ++j) EXPECT_NEAR(last(i, j), whole(i + 1, j), 1e-12);
  }
}

TEST(Dense, LdltOfAnIndefiniteMatrix) {
  const Matrix A = matrix(2, 2, {1, 2, 2, 1});  // eigenvalues 3 and -1
  const Ldlt ldlt(A);
  expect_near(ldlt.solve(Vector{5, 4}), Vector{1, 2});
  expect_near(ldlt.inverse().all(), Vector{-1.0 / 3, 2.0 / 3, 2.0 / 3, -1.0 / 3});
  const Vector D = ldlt.diagonal();
  EXPECT_NEAR(D[0] * D[1], -3, 1e-14);
}

TEST(Dense, SymmetricEigenvaluesByHand) {
  // 2 1 0; 1 2 0; 0 0 5: 1 along (1, -1, 0), 3 along (1, 1, 0), 5 along the third axis.
  const Matrix A = matrix(3, 3, {2, 1, 0, 1, 2, 0, 0, 0, 5});
  expect_near(symmetric_eigenvalues(A), Vector{1, 3, 5});
  const SymmetricEigen eigen = symmetric_eigen(A);
  expect_near(eigen.values, Vector{1, 3, 5});
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(norm(eigen.vectors.row(k)), 1, 1e-14);
    Vector want(eigen.vectors.row(k).begin(), eigen.vectors.row(k).end());
    for (double& w : want) w *= eigen.values[k];
    expect_near(multiply(A, eigen.vectors.row(k)), want);
  }
  const double root = std::sqrt(0.5);
  expect_near(Vector{std::abs(eigen.vectors(0, 0)), std::abs(eigen.vectors(1, 1))},
              Vector{root, root});
  EXPECT_LT(eigen.vectors(0, 0) * eigen.vectors(0, 1), 0);
}

TEST(Dense, RootsOfSemidefiniteMatrices) {
  const Matrix A = matrix(3, 3, {2, 1, 0, 1, 2, 0, 0, 0, 5}), R = semidefinite_root(A);
  expect_near(multiply(transposed(R), R).all(), A.all());
  const Matrix singular = matrix(2, 2, {1, 2, 2, 4}), S = semidefinite_root(singular);
  expect_near(multiply(transposed(S), S).all(), singular.all());
  EXPECT_EQ(semidefinite_root(matrix(1, 1, {-1e-20}))(0, 0), 0);
}

TEST(Dense, NormsAndSpectra) {
  EXPECT_NEAR(operator_norm(matrix(2, 2, {3, 0, 4, 5})), std::sqrt(45.0), 1e-13);
  EXPECT_NEAR(operator_norm(matrix(1, 2, {3, 4})), 5, 1e-14);
  expect_near(modulus(matrix(2, 2, {0, -2, 3, 0})).all(), Vector{3, 0, 0, 2});
  expect_near(modulus(matrix(1, 2, {3, 4})).all(), Vector{1.8, 2.4, 2.4, 3.2}, 1e-7);
  EXPECT_NEAR(spectral_radius(matrix(2, 2, {0, -2, 2, 0})), 2, 1e-14);  // +-2i
  EXPECT_NEAR(spectral_radius(matrix(2, 2, {1, 100, 0, -3})), 3, 1e-14);
  EXPECT_NEAR(spectral_radius(matrix(3, 3, {0, -2, 5, 2, 0, 7, 0, 0, 1})), 2, 1e-14);  // +-2i, 1
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(spectral_radius(matrix(2, 2, {nan, 1, 1, 0})) < 1);  // not stable
}

}  // namespace
}  // namespace affpcl
