// Products of dense matrices and rotations of their rows, compiled once per instruction set as kernels.h is. Bits depend on the
// instruction set and on sizes, never on threads or ranks. dense.h calls them; nothing else does.
#pragma once

#include <cstddef>

namespace affpcl::kernels {

// A matrix in memory, entry (i, k) at p[i * row + k * column].
struct Strided {
  const double* p;
  std::ptrdiff_t row, column;
};

// C[m][n] = alpha A B where `add` is false, else C += alpha A B. A is m x k, B is k x n; C shares no
// memory with them.
void product(double alpha, Strided A, Strided B, std::size_t m, std::size_t n, std::size_t k,
             bool add, double* C);

// S[n][n] += alpha A A' for A[n][k], row after row. S is symmetric.
void add_gram(double alpha, const double* A, std::size_t n, std::size_t k, double* S);

// y[m] = A x for A[m][n], row after row.
void times_column(const double* A, const double* x, std::size_t m, std::size_t n, double* y);

// y[n] = alpha A'x for A[m][n] where `add` is false, else y += alpha A'x.
void times_row(double alpha, const double* A, const double* x, std::size_t m, std::size_t n,
               bool add, double* y);

// Rotates neighbouring rows of V, whose rows are `stride` numbers apart, a multiple of kLaneStep: of
// rows i and i + 1, from i = last - 1 down to i = first,
//   v_i <- c[i] v_i - s[i] v_(i+1),  v_(i+1) <- s[i] v_i + c[i] v_(i+1).
void rotate_rows(const double* c, const double* s, std::size_t first, std::size_t last,
                 std::size_t stride, double* V);

}  // namespace affpcl::kernels
