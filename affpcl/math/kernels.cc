#include "affpcl/math/kernels.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/instruction_sets-inl.h"

// Highway compiles the namespace HWY_NAMESPACE of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/kernels.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"
#include "affpcl/math/lane_groups-inl.h"
#include "affpcl/math/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

// Rows of a block are offsets far below 2^31.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
using D = hn::CappedTag<double, kLaneStep>;
using V = hn::Vec<D>;

constexpr bool kWide = HWY_TARGET <= HWY_AVX3;  // 32 registers

inline int Width() { return static_cast<int>(hn::Lanes(D())); }

// R rows by C vectors at a time: the accumulators stay in registers and hide the latency of the
// multiply-add.
template <int R, int C>
HWY_INLINE void MatvecTile(const double* A, int cols, const double* x, double* y) {
  const D d;
  const int N = Width();
  V sum[R][C];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < C; ++v) sum[r][v] = hn::Zero(d);
  for (int c = 0; c < cols; ++c) {
    V u[C];
    for (int v = 0; v < C; ++v) u[v] = hn::Load(d, x + c * kLanes + v * N);
    for (int r = 0; r < R; ++r) {
      const V a = hn::Set(d, A[static_cast<std::ptrdiff_t>(r) * cols + c]);
      for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(a, u[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < C; ++v) hn::Store(sum[r][v], d, y + r * kLanes + v * N);
}

template <int R>
HWY_INLINE void MatvecRows(const double* A, int cols, const double* x, double* y, int lanes) {
  const int N = Width();
  int l = 0;
  for (; kWide && l + 4 * N <= lanes; l += 4 * N) MatvecTile<R, 4>(A, cols, x + l, y + l);
  for (; kWide && l + 3 * N <= lanes; l += 3 * N) MatvecTile<R, 3>(A, cols, x + l, y + l);
  for (; l + 2 * N <= lanes; l += 2 * N) MatvecTile<R, 2>(A, cols, x + l, y + l);
  if (l < lanes) MatvecTile<R, 1>(A, cols, x + l, y + l);
}

void Matvec(const double* A, int rows, int cols, const double* x, double* y, int lanes) {
  int r = 0;
  for (; r + 4 <= rows; r += 4)
    MatvecRows<4>(A + static_cast<std::ptrdiff_t>(r) * cols, cols, x, y + r * kLanes, lanes);
  for (; r < rows; ++r)
    MatvecRows<1>(A + static_cast<std::ptrdiff_t>(r) * cols, cols, x, y + r * kLanes, lanes);
}

// A times one column, R rows at a time: a row is contiguous.
template <int R>
HWY_INLINE void MatvecOneRows(const double* A, int cols, const double* x, double* y) {
  const D d;
  const int N = Width();
  V sum[R];
  for (int r = 0; r < R; ++r) sum[r] = hn::Zero(d);
  const auto row = [=](int r) { return A + static_cast<std::ptrdiff_t>(r) * cols; };
  int c = 0;
  for (; c + N <= cols; c += N)
    for (int r = 0; r < R; ++r)
      sum[r] = hn::MulAdd(hn::LoadU(d, row(r) + c), hn::LoadU(d, x + c), sum[r]);
  if (kMasks && c < cols) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(cols - c));
    for (int r = 0; r < R; ++r)
      sum[r] =
          hn::MulAdd(hn::MaskedLoad(rest, d, row(r) + c), hn::MaskedLoad(rest, d, x + c), sum[r]);
    c = cols;
  }
  LaneSumsOf(d, sum, y);
  for (; c < cols; ++c)
    for (int r = 0; r < R; ++r) y[r] += row(r)[c] * x[c];
}

void MatvecOne(const double* A, int rows, int cols, const double* x, double* y) {
  int r = 0;
  for (; r + 4 <= rows; r += 4)
    MatvecOneRows<4>(A + static_cast<std::ptrdiff_t>(r) * cols, cols, x, y + r);
  for (; r < rows; ++r) MatvecOneRows<1>(A + static_cast<std::ptrdiff_t>(r) * cols, cols, x, y + r);
}

// y comes from `row`, and `less` is taken off at the end; C vectors of lanes at a time.
template <int C, class Row, class Less>
HWY_INLINE void RankOneLanes(const double* s, int rows, double eps, double* out, int l, Row row,
                             Less less) {
  const D d;
  const int N = Width();
  V dot[C];
  for (int v = 0; v < C; ++v) dot[v] = hn::Zero(d);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < C; ++v)
      dot[v] = hn::MulAdd(hn::Load(d, s + r * kLanes + l + v * N), row(r, l + v * N), dot[v]);
  for (int v = 0; v < C; ++v) dot[v] = hn::Mul(dot[v], hn::Set(d, eps));
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < C; ++v) {
      const int at = l + v * N;
      const V y = hn::MulAdd(hn::Load(d, s + r * kLanes + at), dot[v], row(r, at));
      hn::Store(less(y, r, at), d, out + r * kLanes + at);
    }
}

template <class Row, class Less>
HWY_INLINE void RankOneWith(const double* s, int rows, double eps, double* out, int lanes, Row row,
                            Less less) {
  EachGroup(D(), lanes,
            [=](auto C, int l) HWY_ATTR { RankOneLanes<C>(s, rows, eps, out, l, row, less); });
}

void RankOne(const double* s, In y, double eps, const double* b, double* out, int lanes) {
  const auto own = [=](int r, int l) HWY_ATTR { return hn::Load(D(), y.p + r * kLanes + l); };
  const auto shared = [=](int r, int) HWY_ATTR { return hn::Set(D(), y.p[r]); };
  const auto minus_b = [=](V v, int r, int l)
                           HWY_ATTR { return hn::Sub(v, hn::Load(D(), b + r * kLanes + l)); };
  const auto as_it_is = [](V v, int, int) HWY_ATTR { return v; };
  if (y.width == 1 && b != nullptr) return RankOneWith(s, y.rows, eps, out, lanes, shared, minus_b);
  if (y.width == 1) return RankOneWith(s, y.rows, eps, out, lanes, shared, as_it_is);
  if (b != nullptr) return RankOneWith(s, y.rows, eps, out, lanes, own, minus_b);
  RankOneWith(s, y.rows, eps, out, lanes, own, as_it_is);
}

void AtCentre(const double* s, const double* b, int rows, kernels::Noisy one, kernels::Noisy two,
              Out difference, Out one_less_b, Out two_less_b) {
  EachGroup(D(), difference.lanes, [=](auto C, int first) HWY_ATTR {
    const D d;
    const auto at = [=](int r, int v) { return r * kLanes + first + v * Width(); };
    V a[C], c[C];
    for (int v = 0; v < C; ++v) a[v] = c[v] = hn::Zero(d);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < C; ++v) {
        const V u = hn::Load(d, s + at(r, v));
        a[v] = hn::MulAdd(u, hn::Set(d, one.y[r]), a[v]);
        c[v] = hn::MulAdd(u, hn::Set(d, two.y[r]), c[v]);
      }
    for (int v = 0; v < C; ++v) {
      a[v] = hn::Mul(a[v], hn::Set(d, one.eps));
      c[v] = hn::Mul(c[v], hn::Set(d, two.eps));
    }
    for (int r = 0; r < rows; ++r) {
      const V one_y = hn::Set(d, one.y[r]), two_y = hn::Set(d, two.y[r]);
      for (int v = 0; v < C; ++v) {
        const V u = hn::Load(d, s + at(r, v)), own = hn::Load(d, b + at(r, v));
        const V x = hn::MulAdd(u, a[v], one_y), y = hn::MulAdd(u, c[v], two_y);
        hn::Store(hn::Sub(x, y), d, difference.p + at(r, v));
        hn::Store(hn::Sub(x, own), d, one_less_b.p + at(r, v));
        hn::Store(hn::Sub(y, own), d, two_less_b.p + at(r, v));
      }
    }
  });
}

// Lanes beyond `count` may hold anything; the order of the sum is that of a full block with zeros
// there.
template <int R>
HWY_INLINE void LaneSums(const double* x, int count, double (&sums)[R]) {
  const D d;
  const int N = Width();
  V sum[R];
  for (int r = 0; r < R; ++r) sum[r] = hn::Zero(d);
  int l = 0;
  for (; l + N <= count; l += N)
    for (int r = 0; r < R; ++r) sum[r] = hn::Add(sum[r], hn::Load(d, x + r * kLanes + l));
  if (l < count) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(count - l));
    for (int r = 0; r < R; ++r)
      sum[r] = hn::Add(sum[r], hn::MaskedLoad(rest, d, x + r * kLanes + l));
  }
  LaneSumsOf(d, sum, sums);
}

double LaneSum(const double* x, int count) {
  double sum[1];
  LaneSums(x, count, sum);
  return sum[0];
}

void AddLaneSums(In rows, int count, double factor, double* sums) {
  int r = 0;
  for (double four[4]; r + 4 <= rows.rows; r += 4) {
    LaneSums(rows.row(r), count, four);
    for (int k = 0; k < 4; ++k) sums[r + k] += factor * four[k];
  }
  for (; r < rows.rows; ++r) sums[r] += factor * LaneSum(rows.row(r), count);
}

// M[e][r] for E rows of psi and R rows of g: E R sums over lanes in registers.
template <int E, int R>
HWY_INLINE void ProductTile(const double* psi, const double* g, int count, double* M, int stride) {
  const D d;
  const int N = Width(), whole = count / N * N;
  V sum[E][R];
  for (int e = 0; e < E; ++e)
    for (int r = 0; r < R; ++r) sum[e][r] = hn::Zero(d);
  const auto add = [&](auto load) HWY_ATTR {
    V b[R];
    for (int r = 0; r < R; ++r) b[r] = load(g + r * kLanes);
    for (int e = 0; e < E; ++e) {
      const V a = load(psi + e * kLanes);
      for (int r = 0; r < R; ++r) sum[e][r] = hn::MulAdd(a, b[r], sum[e][r]);
    }
  };
  for (int l = 0; l < whole; l += N)
    add([=](const double* p) HWY_ATTR { return hn::Load(D(), p + l); });
  if (whole < count) {
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(count - whole));
    add([=](const double* p) HWY_ATTR { return hn::MaskedLoad(rest, D(), p + whole); });
  }
  double sums[R];
  for (int e = 0; e < E; ++e, M += stride) {
    LaneSumsOf(d, sum[e], sums);
    for (int r = 0; r < R; ++r) M[r] += sums[r];
  }
}

template <int E>
HWY_INLINE void ProductRows(const double* psi, const double* g, int dim, int count, double* M,
                            int stride) {
  constexpr int R = kWide ? 4 : 2;  // as many sums as there are registers
  int r = 0;
  for (; r + R <= dim; r += R) ProductTile<E, R>(psi, g + r * kLanes, count, M + r, stride);
  for (; r < dim; ++r) ProductTile<E, 1>(psi, g + r * kLanes, count, M + r, stride);
}

// Lanes beyond `count` may hold anything.
void AddProduct(const double* psi, int p, const double* g, int dim, int count, double* M) {
  int e = 0;
  for (; e + 4 <= p; e += 4)
    ProductRows<4>(psi + e * kLanes, g, dim, count, M + static_cast<std::ptrdiff_t>(e) * dim, dim);
  for (; e < p; ++e)
    ProductRows<1>(psi + e * kLanes, g, dim, count, M + static_cast<std::ptrdiff_t>(e) * dim, dim);
}

// What is right of the diagonal, and then the same on its left.
void AddSquare(const double* psi, int p, int count, double* M) {
  const auto at = [=](int e, int r) { return M + static_cast<std::ptrdiff_t>(e) * p + r; };
  int e = 0;
  for (; e + 4 <= p; e += 4)
    ProductRows<4>(psi + e * kLanes, psi + e * kLanes, p - e, count, at(e, e), p);
  for (; e < p; ++e) ProductRows<1>(psi + e * kLanes, psi + e * kLanes, p - e, count, at(e, e), p);
  for (e = 1; e < p; ++e)
    for (int r = 0; r < e; ++r) *at(e, r) = *at(r, e);
}

// R rows of x'A x by C vectors, from the columns up to row r's group: those before it count twice.
template <int R, int C>
HWY_INLINE void QuadraticTile(const double* A, int n, int r, const double* x, double* sum) {
  const D d;
  const int N = Width();
  V before[R][C], group[R][C];
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < C; ++v) before[i][v] = group[i][v] = hn::Zero(d);
  const auto add = [&](int c, V(&to)[R][C]) HWY_ATTR {
    V u[C];
    for (int v = 0; v < C; ++v) u[v] = hn::Load(d, x + c * kLanes + v * N);
    for (int i = 0; i < R; ++i) {
      const V a = hn::Set(d, A[static_cast<std::ptrdiff_t>(r + i) * n + c]);
      for (int v = 0; v < C; ++v) to[i][v] = hn::MulAdd(a, u[v], to[i][v]);
    }
  };
  for (int c = 0; c < r; ++c) add(c, before);
  for (int c = r; c < r + R; ++c) add(c, group);
  for (int v = 0; v < C; ++v) {
    V all = hn::Load(d, sum + v * N);
    for (int i = 0; i < R; ++i)
      all = hn::MulAdd(hn::Load(d, x + (r + i) * kLanes + v * N),
                       hn::MulAdd(hn::Set(d, 2.0), before[i][v], group[i][v]), all);
    hn::Store(all, d, sum + v * N);
  }
}

template <int C>
HWY_INLINE void QuadraticColumns(const double* A, int n, const double* x, double* sum) {
  const D d;
  for (int v = 0; v < C; ++v) hn::Store(hn::Zero(d), d, sum + v * Width());
  int r = 0;
  for (; r + 4 <= n; r += 4) QuadraticTile<4, C>(A, n, r, x, sum);
  for (; r < n; ++r) QuadraticTile<1, C>(A, n, r, x, sum);
}

void Quadratic(const double* A, int n, const double* x, double* sum, int lanes) {
  const int N = Width();
  int l = 0;
  for (; kWide && l + 3 * N <= lanes; l += 3 * N) QuadraticColumns<3>(A, n, x + l, sum + l);
  for (; l + 2 * N <= lanes; l += 2 * N) QuadraticColumns<2>(A, n, x + l, sum + l);
  if (l < lanes) QuadraticColumns<1>(A, n, x + l, sum + l);
}

void Softmax(Out rows, const double* bias) {
  const D d;
  for (int l = 0; l < rows.lanes; l += Width()) {
    const auto at = [&](int e) { return rows.row(e) + l; };
    const auto logit = [&](int e)
                           HWY_ATTR { return hn::Add(hn::Load(d, at(e)), hn::Set(d, bias[e])); };
    V most = logit(0), other = most, sum = hn::Zero(d);
    int e = 1;
    for (; e + 2 <= rows.rows; e += 2) {  // two chains
      most = hn::Max(most, logit(e));
      other = hn::Max(other, logit(e + 1));
    }
    if (e < rows.rows) most = hn::Max(most, logit(e));
    most = hn::Max(most, other);
    for (e = 0; e < rows.rows; ++e) {
      const V x = Exp(d, hn::Sub(logit(e), most));
      hn::Store(x, d, at(e));
      sum = hn::Add(sum, x);
    }
    const V share = hn::Div(hn::Set(d, 1.0), sum);
    for (e = 0; e < rows.rows; ++e) hn::Store(hn::Mul(hn::Load(d, at(e)), share), d, at(e));
  }
}

void AddTo(const double* from, std::size_t count, double* to) {
  const D d;
  const auto N = hn::Lanes(d);
  std::size_t k = 0;
  for (; k + N <= count; k += N)
    hn::StoreU(hn::Add(hn::LoadU(d, to + k), hn::LoadU(d, from + k)), d, to + k);
  for (; k < count; ++k) to[k] += from[k];
}

void Multiply(const double* from, double factor, std::size_t count, double* to) {
  const D d;
  const auto N = hn::Lanes(d);
  std::size_t k = 0;
  for (; k + N <= count; k += N)
    hn::StoreU(hn::Mul(hn::LoadU(d, from + k), hn::Set(d, factor)), d, to + k);
  for (; k < count; ++k) to[k] = from[k] * factor;
}

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Matvec);
HWY_EXPORT(MatvecOne);
HWY_EXPORT(RankOne);
HWY_EXPORT(AtCentre);
HWY_EXPORT(LaneSum);
HWY_EXPORT(AddProduct);
HWY_EXPORT(AddSquare);
HWY_EXPORT(Quadratic);
HWY_EXPORT(AddLaneSums);
HWY_EXPORT(Softmax);
HWY_EXPORT(AddTo);
HWY_EXPORT(Multiply);

std::string instruction_set() {
  const std::int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);  // the lowest bit is the best target
}

std::vector<std::string> available_instruction_sets() {
  const std::string in_use = instruction_set();
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::string> names;
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(rest & -rest));
  use_instruction_set(in_use);
  return names;
}

void use_instruction_set(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1)
    if (name == hwy::TargetName(rest & -rest)) hwy::SetSupportedTargetsForTest(rest & -rest);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

namespace kernels {

void matvec(const double* A, int rows, int cols, In x, Out y) {
  HWY_DYNAMIC_DISPATCH(Matvec)(A, rows, cols, x.p, y.p, y.lanes);
}

void matvec(const double* A, int rows, int cols, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(MatvecOne)(A, rows, cols, x, y);
}

void rank_one(In s, In y, double eps, Out out) {
  HWY_DYNAMIC_DISPATCH(RankOne)(s.p, y, eps, nullptr, out.p, out.lanes);
}

void rank_one(In s, In y, double eps, In b, Out out) {
  HWY_DYNAMIC_DISPATCH(RankOne)(s.p, y, eps, b.p, out.p, out.lanes);
}

void at_centre(In s, In b, const Noisy& one, const Noisy& two, Out difference, Out one_less_b,
               Out two_less_b) {
  HWY_DYNAMIC_DISPATCH(AtCentre)
  (s.p, b.p, s.rows, one, two, difference, one_less_b, two_less_b);
}

double lane_sum(const double* x, int count) { return HWY_DYNAMIC_DISPATCH(LaneSum)(x, count); }

void add_product(In psi, In g, int count, double* M) {
  if (psi.width == 1 || g.width == 1) {  // spread what is shared; the space is kept
    thread_local Buffer space;
    const std::size_t need = static_cast<std::size_t>(psi.rows + g.rows) * kLanes;
    if (space.size() < need) space = Buffer(need);
    double* p = space.data();
    const auto spread = [&](In in) {
      if (in.width != 1) return in;
      double* start = p;
      for (int r = 0; r < in.rows; ++r, p += kLanes) std::fill_n(p, kLanes, in.p[r]);
      return In{start, in.rows, kLanes};
    };
    psi = spread(psi);
    g = spread(g);
  }
  HWY_DYNAMIC_DISPATCH(AddProduct)(psi.p, psi.rows, g.p, g.rows, count, M);
}

void add_square(In psi, int count, double* M) {
  HWY_DYNAMIC_DISPATCH(AddSquare)(psi.p, psi.rows, count, M);
}

void quadratic(const double* A, In x, Out one_row) {
  HWY_DYNAMIC_DISPATCH(Quadratic)(A, x.rows, x.p, one_row.p, one_row.lanes);
}

void add_lane_sums(In rows, int count, double factor, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddLaneSums)(rows, count, factor, sums);
}

void softmax(Out rows, const double* bias) { HWY_DYNAMIC_DISPATCH(Softmax)(rows, bias); }

void add(const double* from, std::size_t count, double* to) {
  HWY_DYNAMIC_DISPATCH(AddTo)(from, count, to);
}

void multiply(const double* from, double factor, std::size_t count, double* to) {
  HWY_DYNAMIC_DISPATCH(Multiply)(from, factor, count, to);
}

}  // namespace kernels
}  // namespace affpcl
#endif
