#include "affpcl/math/products.h"

#include <algorithm>
#include <vector>

#include "affpcl/math/instruction_sets-inl.h"

// Highway compiles the namespace HWY_NAMESPACE of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/products.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/blocks.h"
#include "affpcl/math/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

using kernels::Strided;
using D = hn::CappedTag<double, kLaneStep>;
using V = hn::Vec<D>;

constexpr bool kWide = HWY_TARGET <= HWY_AVX3;  // 32 registers
constexpr std::size_t kDepth = 256;             // of B at a time: it stays in cache

inline std::size_t Width() { return hn::Lanes(D()); }

// The first `count` numbers at p, and zeros.
HWY_INLINE V LoadFirst(const double* p, std::size_t count) {
  const D d;
  if constexpr (kMasks) return hn::MaskedLoad(hn::FirstN(d, count), d, p);
  HWY_ALIGN double lanes[kLaneStep] = {};
  for (std::size_t l = 0; l < count; ++l) lanes[l] = p[l];
  return hn::Load(d, lanes);
}

HWY_INLINE void Put(double alpha, bool add, double sum, double& to) {
  to = add ? to + alpha * sum : alpha * sum;
}

// --- rows times rows: both are contiguous along the sum

// sums[r][c] = the product of row r of A and row c of B.
template <int R, int C>
HWY_INLINE void RowsTile(const double* A, std::ptrdiff_t a, const double* B, std::ptrdiff_t b,
                         std::size_t k, double (&sums)[R][C]) {
  const D d;
  const std::size_t N = Width();
  V sum[C][R];
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r) sum[c][r] = hn::Zero(d);
  const auto step = [&](auto load) HWY_ATTR {
    V x[R];
    for (int r = 0; r < R; ++r) x[r] = load(A + r * a);
    for (int c = 0; c < C; ++c) {
      const V y = load(B + c * b);
      for (int r = 0; r < R; ++r) sum[c][r] = hn::MulAdd(x[r], y, sum[c][r]);
    }
  };
  std::size_t at = 0;
  for (; at + N <= k; at += N) step([=](const double* p) HWY_ATTR { return hn::LoadU(d, p + at); });
  if (at < k) step([=](const double* p) HWY_ATTR { return LoadFirst(p + at, k - at); });
  for (int c = 0; c < C; ++c) {
    double column[R];
    LaneSumsOf<R>(d, sum[c], column);
    for (int r = 0; r < R; ++r) sums[r][c] = column[r];
  }
}

template <int R, int C>
HWY_INLINE void RowsInto(double alpha, const double* A, std::ptrdiff_t a, const double* B,
                         std::ptrdiff_t b, std::size_t k, bool add, double* to, std::size_t n) {
  double sums[R][C];
  RowsTile<R, C>(A, a, B, b, k, sums);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      Put(alpha, add, sums[r][c],
          to[static_cast<std::size_t>(r) * n + static_cast<std::size_t>(c)]);
}

// Rows [0, R) of C, columns [first, last).
template <int R>
HWY_INLINE void RowsStrip(double alpha, const double* A, std::ptrdiff_t a, const double* B,
                          std::ptrdiff_t b, std::size_t k, bool add, double* C, std::size_t n,
                          std::size_t first, std::size_t last) {
  std::size_t j = first;
  for (; j + 4 <= last; j += 4)
    RowsInto<R, 4>(alpha, A, a, B + static_cast<std::ptrdiff_t>(j) * b, b, k, add, C + j, n);
  for (; j < last; ++j)
    RowsInto<R, 1>(alpha, A, a, B + static_cast<std::ptrdiff_t>(j) * b, b, k, add, C + j, n);
}

void RowsByRows(double alpha, const double* A, std::ptrdiff_t a, const double* B, std::ptrdiff_t b,
                std::size_t m, std::size_t n, std::size_t k, bool add, double* C) {
  std::size_t i = 0;
  for (; i + 4 <= m; i += 4)
    RowsStrip<4>(alpha, A + static_cast<std::ptrdiff_t>(i) * a, a, B, b, k, add, C + i * n, n, 0,
                 n);
  for (; i < m; ++i)
    RowsStrip<1>(alpha, A + static_cast<std::ptrdiff_t>(i) * a, a, B, b, k, add, C + i * n, n, 0,
                 n);
}

// The lower triangle in strips of four rows; each strip ends behind the diagonal.
void Gram(double alpha, const double* A, std::size_t n, std::size_t k, double* S) {
  const auto a = static_cast<std::ptrdiff_t>(k);
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    RowsStrip<4>(alpha, A + i * k, a, A, a, k, true, S + i * n, n, 0, i + 4);
  for (; i < n; ++i) RowsStrip<1>(alpha, A + i * k, a, A, a, k, true, S + i * n, n, 0, i + 1);
  for (i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) S[j * n + i] = S[i * n + j];
}

// --- anything times a packed panel of B: P vectors wide, filled up with zeros

// R rows of A times a panel of `width` columns.
template <int R, int P>
HWY_INLINE void PanelTile(double alpha, Strided A, const double* panel, std::size_t k, bool add,
                          double* C, std::size_t n, std::size_t width) {
  const D d;
  const std::size_t N = Width();
  V sum[R][P];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < P; ++v) sum[r][v] = hn::Zero(d);
  for (std::size_t at = 0; at < k; ++at) {
    V b[P];
    for (int v = 0; v < P; ++v) b[v] = hn::LoadU(d, panel + static_cast<std::size_t>(v) * N);
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(d, A.p[r * A.row]);
      for (int v = 0; v < P; ++v) sum[r][v] = hn::MulAdd(x, b[v], sum[r][v]);
    }
    panel += P * N;
    A.p += A.column;
  }
  HWY_ALIGN double row[P * kLaneStep] = {};
  for (int r = 0; r < R; ++r) {
    double* const to = C + static_cast<std::size_t>(r) * n;
    for (int v = 0; v < P; ++v) hn::Store(sum[r][v], d, row + static_cast<std::size_t>(v) * N);
    for (std::size_t j = 0; j < width; ++j) Put(alpha, add, row[j], to[j]);
  }
}

template <int P>
HWY_INLINE void Panel(double alpha, Strided A, const double* panel, std::size_t m, std::size_t k,
                      bool add, double* C, std::size_t n, std::size_t width) {
  constexpr int kRows = kWide && P <= 2 ? 8 : 4;
  std::size_t i = 0;
  for (; i + kRows <= m; i += kRows, A.p += kRows * A.row)
    PanelTile<kRows, P>(alpha, A, panel, k, add, C + i * n, n, width);
  for (; i < m; ++i, A.p += A.row) PanelTile<1, P>(alpha, A, panel, k, add, C + i * n, n, width);
}

// Columns [first, first + width) of k rows of B, `padded` wide.
HWY_INLINE void Pack(Strided B, std::size_t first, std::size_t width, std::size_t padded,
                     std::size_t k, double* to) {
  B.p += static_cast<std::ptrdiff_t>(first) * B.column;
  for (std::size_t at = 0; at < k; ++at, B.p += B.row, to += padded) {
    for (std::size_t j = 0; j < width; ++j) to[j] = B.p[static_cast<std::ptrdiff_t>(j) * B.column];
    for (std::size_t j = width; j < padded; ++j) to[j] = 0;
  }
}

void ByPanels(double alpha, Strided A, Strided B, std::size_t m, std::size_t n, std::size_t k,
              bool add, double* C) {
  const std::size_t N = Width();
  constexpr std::size_t kMost = kWide ? 4 : 2;  // vectors in a panel
  thread_local std::vector<double> packed;      // memory is kept
  packed.resize(std::max(packed.size(), kMost * N * std::min(k, kDepth)));
  for (std::size_t from = 0; from < k; from += kDepth) {
    const std::size_t depth = std::min(kDepth, k - from);
    const Strided a = {A.p + static_cast<std::ptrdiff_t>(from) * A.column, A.row, A.column};
    const Strided b = {B.p + static_cast<std::ptrdiff_t>(from) * B.row, B.row, B.column};
    const bool more = add || from > 0;
    for (std::size_t j = 0; j < n;) {
      const std::size_t left = (n - j + N - 1) / N;
      const std::size_t vectors = left >= kMost ? kMost : left >= 2 ? 2 : 1;
      const std::size_t width = std::min(n - j, vectors * N);
      Pack(b, j, width, vectors * N, depth, packed.data());
      if (vectors == 4) {
        Panel<4>(alpha, a, packed.data(), m, depth, more, C + j, n, width);
      } else if (vectors == 2) {
        Panel<2>(alpha, a, packed.data(), m, depth, more, C + j, n, width);
      } else {
        Panel<1>(alpha, a, packed.data(), m, depth, more, C + j, n, width);
      }
      j += width;
    }
  }
}

// --- one column

void TimesColumn(const double* A, const double* x, std::size_t m, std::size_t n, double* y) {
  const auto a = static_cast<std::ptrdiff_t>(n);
  std::size_t i = 0;
  for (; i + 4 <= m; i += 4) RowsInto<4, 1>(1, A + i * n, a, x, 0, n, false, y + i, 1);
  for (; i < m; ++i) RowsInto<1, 1>(1, A + i * n, a, x, 0, n, false, y + i, 1);
}

template <int P>
HWY_INLINE void RowTile(double alpha, const double* A, const double* x, std::size_t m,
                        std::size_t n, bool add, double* y) {
  const D d;
  const std::size_t N = Width();
  V sum[P];
  for (int v = 0; v < P; ++v) sum[v] = hn::Zero(d);
  for (std::size_t i = 0; i < m; ++i) {
    const V xi = hn::Set(d, x[i]);
    for (int v = 0; v < P; ++v)
      sum[v] = hn::MulAdd(xi, hn::LoadU(d, A + i * n + static_cast<std::size_t>(v) * N), sum[v]);
  }
  HWY_ALIGN double row[P * kLaneStep] = {};
  for (int v = 0; v < P; ++v) hn::Store(sum[v], d, row + static_cast<std::size_t>(v) * N);
  for (std::size_t j = 0; j < P * N; ++j) Put(alpha, add, row[j], y[j]);
}

void TimesRow(double alpha, const double* A, const double* x, std::size_t m, std::size_t n,
              bool add, double* y) {
  const D d;
  const std::size_t N = Width();
  std::size_t j = 0;
  for (; j + 4 * N <= n; j += 4 * N) RowTile<4>(alpha, A + j, x, m, n, add, y + j);
  for (; j + N <= n; j += N) RowTile<1>(alpha, A + j, x, m, n, add, y + j);
  if (j == n) return;
  V sum = hn::Zero(d);
  for (std::size_t i = 0; i < m; ++i)
    sum = hn::MulAdd(hn::Set(d, x[i]), LoadFirst(A + i * n + j, n - j), sum);
  HWY_ALIGN double row[kLaneStep] = {};
  hn::Store(sum, d, row);
  for (std::size_t l = 0; j + l < n; ++l) Put(alpha, add, row[l], y[j + l]);
}

// --- rotations: the row that two of them share stays in registers

template <int P>
HWY_INLINE void RotateColumns(const double* c, const double* s, std::size_t first, std::size_t last,
                              std::size_t stride, double* V_) {
  const D d;
  const std::size_t N = Width();
  double* row = V_ + last * stride;
  V shared[P];
  for (int v = 0; v < P; ++v) shared[v] = hn::LoadU(d, row + static_cast<std::size_t>(v) * N);
  for (std::size_t i = last; i-- > first;) {
    const V cosine = hn::Set(d, c[i]), sine = hn::Set(d, s[i]);
    double* const above = row - stride;
    for (int v = 0; v < P; ++v) {
      const std::size_t at = static_cast<std::size_t>(v) * N;
      const V upper = hn::LoadU(d, above + at);
      hn::StoreU(hn::MulAdd(sine, upper, hn::Mul(cosine, shared[v])), d, row + at);
      shared[v] = hn::NegMulAdd(sine, shared[v], hn::Mul(cosine, upper));
    }
    row = above;
  }
  for (int v = 0; v < P; ++v) hn::StoreU(shared[v], d, row + static_cast<std::size_t>(v) * N);
}

void RotateRows(const double* c, const double* s, std::size_t first, std::size_t last,
                std::size_t stride, double* V_) {
  const std::size_t N = Width();
  std::size_t j = 0;
  for (; j + 4 * N <= stride; j += 4 * N) RotateColumns<4>(c, s, first, last, stride, V_ + j);
  for (; j + 2 * N <= stride; j += 2 * N) RotateColumns<2>(c, s, first, last, stride, V_ + j);
  for (; j < stride; j += N) RotateColumns<1>(c, s, first, last, stride, V_ + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl::kernels {

HWY_EXPORT(RowsByRows);
HWY_EXPORT(ByPanels);
HWY_EXPORT(Gram);
HWY_EXPORT(TimesColumn);
HWY_EXPORT(TimesRow);
HWY_EXPORT(RotateRows);

void product(double alpha, Strided A, Strided B, std::size_t m, std::size_t n, std::size_t k,
             bool add, double* C) {
  if (A.column == 1 && B.row == 1 && k > 1) {
    HWY_DYNAMIC_DISPATCH(RowsByRows)(alpha, A.p, A.row, B.p, B.column, m, n, k, add, C);
  } else if (k > 0) {
    HWY_DYNAMIC_DISPATCH(ByPanels)(alpha, A, B, m, n, k, add, C);
  } else if (!add) {
    std::fill_n(C, m * n, 0.0);
  }
}

void add_gram(double alpha, const double* A, std::size_t n, std::size_t k, double* S) {
  HWY_DYNAMIC_DISPATCH(Gram)(alpha, A, n, k, S);
}

void times_column(const double* A, const double* x, std::size_t m, std::size_t n, double* y) {
  HWY_DYNAMIC_DISPATCH(TimesColumn)(A, x, m, n, y);
}

void times_row(double alpha, const double* A, const double* x, std::size_t m, std::size_t n,
               bool add, double* y) {
  HWY_DYNAMIC_DISPATCH(TimesRow)(alpha, A, x, m, n, add, y);
}

void rotate_rows(const double* c, const double* s, std::size_t first, std::size_t last,
                 std::size_t stride, double* V) {
  HWY_DYNAMIC_DISPATCH(RotateRows)(c, s, first, last, stride, V);
}

}  // namespace affpcl::kernels
#endif
