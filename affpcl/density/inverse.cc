#include "affpcl/density/inverse.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace affpcl {
namespace {
constexpr double kCutoff = 1e-10;
}

int generalised_inverse(const double* G, int p, double ridge, Scratch& scratch, double* W) {
  const auto size = static_cast<std::size_t>(p);
  double* const scale = scratch.numbers(size);      // 1 / sqrt(G_kk), 0 for a feature never seen
  double* const C = scratch.numbers(size * size);   // the scaled matrix, then L below the diagonal
  double* const L1 = scratch.numbers(size * size);  // L^-1
  double* const order_space = scratch.numbers(size);  // the pivots' places, as numbers
  for (int k = 0; k < p; ++k) {
    scale[k] = G[k * p + k] > 0 ? 1 / std::sqrt(G[k * p + k]) : 0;
    order_space[k] = k;
  }
  const auto order = [&](int k) { return static_cast<int>(order_space[k]); };
  for (int a = 0; a < p; ++a)
    for (int b = 0; b < p; ++b)
      C[a * p + b] = G[a * p + b] * scale[a] * scale[b] + (a == b && scale[a] > 0 ? ridge : 0);

  int rank = 0;
  for (; rank < p; ++rank) {
    int best = rank;
    for (int k = rank + 1; k < p; ++k)
      if (C[k * p + k] > C[best * p + best]) best = k;
    if (!(C[best * p + best] > kCutoff)) break;
    std::swap(order_space[rank], order_space[best]);
    for (int k = 0; k < p; ++k) std::swap(C[rank * p + k], C[best * p + k]);
    for (int k = 0; k < p; ++k) std::swap(C[k * p + rank], C[k * p + best]);
    const double pivot = std::sqrt(C[rank * p + rank]);
    C[rank * p + rank] = pivot;
    for (int k = rank + 1; k < p; ++k) C[k * p + rank] /= pivot;
    for (int a = rank + 1; a < p; ++a) {
      const double left = C[a * p + rank];
      for (int b = rank + 1; b <= a; ++b) C[a * p + b] -= left * C[b * p + rank];
    }
    for (int a = rank + 1; a < p; ++a)  // the upper half follows, for the swaps
      for (int b = rank + 1; b < a; ++b) C[b * p + a] = C[a * p + b];
  }

  for (int a = 0; a < rank; ++a)
    for (int b = 0; b <= a; ++b) {
      double sum = a == b ? 1 : 0;
      for (int k = b; k < a; ++k) sum -= C[a * p + k] * L1[k * p + b];
      L1[a * p + b] = sum / C[a * p + a];
    }
  std::fill_n(W, size * size, 0.0);
  for (int a = 0; a < rank; ++a)
    for (int b = 0; b <= a; ++b) {
      double sum = 0;
      for (int k = a; k < rank; ++k) sum += L1[k * p + a] * L1[k * p + b];
      const int i = order(a), j = order(b);
      W[i * p + j] = W[j * p + i] = sum * scale[i] * scale[j];
    }
  return rank;
}

}  // namespace affpcl
