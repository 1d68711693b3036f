#include "affpcl/math/mixture.h"

#include <algorithm>
#include <cstddef>

#ifndef AFFPCL_MATH_MIXTURE_TABLE
#define AFFPCL_MATH_MIXTURE_TABLE
namespace affpcl {

constexpr int kVectorBytes = 64;                // bytes of a vector
constexpr std::size_t kCacheBytes = 1'000'000;  // what a tile of exponentials may take

// The components in columns, padded: component e is number e of every row of `stride` numbers.
template <class T>
struct Columns {
  int dim = 0, components = 0;
  std::ptrdiff_t stride = 0;
  const T *means = nullptr, *bias = nullptr, *weight = nullptr;
};

// A tile's samples: rows of 64 lanes.
template <class T>
struct Samples {
  const T *s, *shift, *g;
  int rows, count;
};

// Memory for a block.
template <class T>
struct Space {
  T* w;         // [samples][stride]
  int samples;  // taken at a time
  T *s, *shift, *g, *factor;
};

// How many samples are taken at a time, so that their exponentials stay in the cache. It depends on
// sizes alone.
inline int samples_at_a_time(std::ptrdiff_t stride, std::size_t bytes) {
  const auto fit = static_cast<int>(kCacheBytes / (static_cast<std::size_t>(stride) * bytes));
  return std::clamp(fit / 8 * 8, 16, kLanes);
}

}  // namespace affpcl
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/mixture.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"
#include "affpcl/math/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

template <class T>
using Tag = hn::CappedTag<T, kVectorBytes / sizeof(T)>;
constexpr bool kWide = HWY_TARGET <= HWY_AVX3;  // 32 registers: tiles of four by four vectors
template <class T>
HWY_INLINE int Width() {
  return static_cast<int>(hn::Lanes(Tag<T>()));
}

// Logits of J samples and C vectors of components.
template <int J, int C, class T>
HWY_INLINE void Logits(const Columns<T>& columns, int e, const T* s, const T* shift,
                       hn::Vec<Tag<T>> (&sum)[J][C]) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  for (int j = 0; j < J; ++j)
    for (int v = 0; v < C; ++v)
      sum[j][v] = hn::Sub(hn::Load(d, columns.bias + e + v * N), hn::Set(d, shift[j]));
  const T* m = columns.means + e;
  for (int r = 0; r < columns.dim; ++r, m += columns.stride, s += kLanes) {
    V row[C];
    for (int v = 0; v < C; ++v) row[v] = hn::Load(d, m + v * N);
    for (int j = 0; j < J; ++j) {
      const V x = hn::Set(d, s[j]);
      for (int v = 0; v < C; ++v) sum[j][v] = hn::MulAdd(x, row[v], sum[j][v]);
    }
  }
}

template <int J, int C, class T>
HWY_INLINE void LogitTile(const Columns<T>& columns, int e, const T* s, const T* shift, T* out) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sum[J][C];
  Logits(columns, e, s, shift, sum);
  for (int j = 0; j < J; ++j)
    for (int v = 0; v < C; ++v) hn::Store(sum[j][v], d, out + j * columns.stride + v * Width<T>());
}

// Where all components are C vectors the logits need not leave the registers before exp.
template <int J, int C, class T>
HWY_INLINE void FewTile(const Columns<T>& columns, const T* s, const T* shift, T* w, T* Z) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  V logit[J][C], sum[J];
  Logits(columns, 0, s, shift, logit);
  for (int j = 0; j < J; ++j) sum[j] = hn::Zero(d);
  for (int v = 0; v < C; ++v) {
    const V weight = hn::Load(d, columns.weight + v * Width<T>());
    for (int j = 0; j < J; ++j) {
      const V x = Exp(d, logit[j][v]);
      hn::Store(x, d, w + j * columns.stride + v * Width<T>());
      sum[j] = hn::MulAdd(x, weight, sum[j]);
    }
  }
  LaneSumsOf(d, sum, Z);
}

template <int C, class T>
HWY_INLINE void FewExponentials(const Columns<T>& columns, const Samples<T>& x, T* w, T* Z) {
  int j = 0;
  for (; j + 4 <= x.count; j += 4)
    FewTile<4, C>(columns, x.s + j, x.shift + j, w + j * columns.stride, Z + j);
  for (; j < x.count; ++j)
    FewTile<1, C>(columns, x.s + j, x.shift + j, w + j * columns.stride, Z + j);
}

// exp of J samples' logits at components [first, last), and what that adds to their sums.
template <int J, class T>
HWY_INLINE void ExpTile(const Columns<T>& columns, int first, int last, T* w, T* sums) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  V sum[J];
  for (int j = 0; j < J; ++j) sum[j] = hn::Load(d, sums + j * N);
  for (int e = first; e < last; e += N) {
    const V weight = hn::Load(d, columns.weight + e);
    for (int j = 0; j < J; ++j) {
      T* p = w + j * columns.stride + e;
      const V x = Exp(d, hn::Load(d, p));
      hn::Store(x, d, p);
      sum[j] = hn::MulAdd(x, weight, sum[j]);
    }
  }
  for (int j = 0; j < J; ++j) hn::Store(sum[j], d, sums + j * N);
}

template <int J, class T>
HWY_INLINE void Exponentials(const Columns<T>& columns, int first, int last, const T* s,
                             const T* shift, T* w, T* sums) {
  const int N = Width<T>();
  int e = first;
  for (; kWide && e + 4 * N <= last; e += 4 * N) LogitTile<J, 4>(columns, e, s, shift, w + e);
  for (; kWide && e + 3 * N <= last; e += 3 * N) LogitTile<J, 3>(columns, e, s, shift, w + e);
  for (; e + 2 * N <= last; e += 2 * N) LogitTile<J, 2>(columns, e, s, shift, w + e);
  for (; e < last; e += N) LogitTile<J, 1>(columns, e, s, shift, w + e);
  ExpTile<J>(columns, first, last, w, sums);
}

// w[j][e] = exp(l_e(s_j) - l_own(s_j)) and Z[j] = sum_e weight_e w[j][e], in strips of components
// whose means stay in the first cache.
template <class T>
void AllExponentials(const Columns<T>& columns, const Samples<T>& x, T* w, T* Z) {
  const Tag<T> d;
  const int N = Width<T>(), end = (columns.components + N - 1) / N * N;
  if (kWide && end <= 4 * N) {
    if (end == 4 * N) return FewExponentials<4>(columns, x, w, Z);
    if (end == 3 * N) return FewExponentials<3>(columns, x, w, Z);
    if (end == 2 * N) return FewExponentials<2>(columns, x, w, Z);
    return FewExponentials<1>(columns, x, w, Z);
  }
  const int strip = std::clamp(384 / columns.dim, 2, 16) / 2 * 2 * N;
  HWY_ALIGN T sums[kLanes * (kVectorBytes / sizeof(T))];
  std::fill_n(sums, x.count * N, T(0));
  for (int first = 0; first < end; first += strip) {
    const int last = std::min(first + strip, end);
    int j = 0;
    for (; j + 4 <= x.count; j += 4)
      Exponentials<4>(columns, first, last, x.s + j, x.shift + j, w + j * columns.stride,
                      sums + j * N);
    for (; j < x.count; ++j)
      Exponentials<1>(columns, first, last, x.s + j, x.shift + j, w + j * columns.stride,
                      sums + j * N);
  }
  for (int j = 0; j < x.count; ++j)
    Z[j] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + j * N)));
}

// M[r][e] += sum_j g[r][j] w[j][e] for R rows and C vectors of components.
template <int R, int C, class T>
HWY_INLINE void ProductTile(const Columns<T>& columns, int e, const T* g, const T* w, int count,
                            double* M) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  V sum[R][C];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < C; ++v) sum[r][v] = hn::Zero(d);
  w += e;
  for (int j = 0; j < count; ++j, w += columns.stride) {
    V x[C];
    for (int v = 0; v < C; ++v) x[v] = hn::Load(d, w + v * N);
    for (int r = 0; r < R; ++r) {
      const V y = hn::Set(d, g[r * kLanes + j]);
      for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(y, x[v], sum[r][v]);
    }
  }
  const Tag<double> dd;
  const hn::Rebind<T, Tag<double>> piece;
  const int step = Width<double>();
  HWY_ALIGN T rows[C * (kVectorBytes / sizeof(T))];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) hn::Store(sum[r][v], d, rows + v * N);
    double* to = M + static_cast<std::ptrdiff_t>(r) * columns.components + e;
    const int width = std::min(C * N, columns.components - e);
    const auto sums_at = [&](int k) HWY_ATTR {
      if constexpr (sizeof(T) == 8) {
        return hn::Load(dd, rows + k);
      } else {
        return hn::PromoteTo(dd, hn::Load(piece, rows + k));
      }
    };
    int k = 0;
    for (; k + step <= width; k += step)
      hn::StoreU(hn::Add(hn::LoadU(dd, to + k), sums_at(k)), dd, to + k);
    if (kMasks && k < width) {
      const auto rest = hn::FirstN(dd, static_cast<std::size_t>(width - k));
      hn::BlendedStore(hn::Add(hn::MaskedLoad(rest, dd, to + k), sums_at(k)), rest, dd, to + k);
      k = width;
    }
    for (; k < width; ++k) to[k] += rows[k];
  }
}

template <int C, class T>
HWY_INLINE void ProductColumns(const Columns<T>& columns, int e, const Samples<T>& x, const T* w,
                               double* M) {
  int r = 0;
  const auto at = [&](int row) { return static_cast<std::ptrdiff_t>(row) * columns.components; };
  for (; kWide && r + 5 <= x.rows && (x.rows - r) % 4 != 0; r += 5)
    ProductTile<5, C>(columns, e, x.g + r * kLanes, w, x.count, M + at(r));
  for (; r + 4 <= x.rows; r += 4)
    ProductTile<4, C>(columns, e, x.g + r * kLanes, w, x.count, M + at(r));
  for (; r < x.rows; ++r) ProductTile<1, C>(columns, e, x.g + r * kLanes, w, x.count, M + at(r));
}

template <class T>
void AddProducts(const Columns<T>& columns, const Samples<T>& x, const T* w, double* M) {
  const int N = Width<T>(), end = (columns.components + N - 1) / N * N;
  int e = 0;
  for (; kWide && e + 4 * N <= end; e += 4 * N) ProductColumns<4>(columns, e, x, w, M);
  for (; kWide && e + 3 * N <= end; e += 3 * N) ProductColumns<3>(columns, e, x, w, M);
  for (; e + 2 * N <= end; e += 2 * N) ProductColumns<2>(columns, e, x, w, M);
  for (; e < end; e += N) ProductColumns<1>(columns, e, x, w, M);
}

// Numbers of a block's rows in the kernel's type, times a factor per lane. Writes whole vectors.
template <class T>
void Scaled(In rows, int first, int count, const T* factor, T* out) {
  const Tag<double> dd;
  const hn::Rebind<T, Tag<double>> d;
  for (int r = 0; r < rows.rows; ++r, out += kLanes)
    for (int j = 0; j < count; j += Width<double>()) {
      const auto x =
          rows.width == 1 ? hn::Set(dd, rows.p[r]) : hn::LoadU(dd, rows.row(r) + first + j);
      if constexpr (sizeof(T) == 8) {
        hn::StoreU(hn::Mul(x, hn::LoadU(d, factor + j)), d, out + j);
      } else {
        hn::StoreU(hn::Mul(hn::DemoteTo(d, x), hn::LoadU(d, factor + j)), d, out + j);
      }
    }
}

template <class T>
void Reciprocals(T* numbers, int count) {  // and of what comes after them, up to a whole vector
  const Tag<T> d;
  for (int j = 0; j < count; j += Width<T>())
    hn::StoreU(hn::Div(hn::Set(d, T(1)), hn::LoadU(d, numbers + j)), d, numbers + j);
}

template <class T>
void AccumulateAs(const Columns<T>& columns, const Space<T>& space, In s, const double* shift, In g,
                  int count, double* M) {
  Samples<T> all{space.s, space.shift, space.g, g.rows, count};
  if constexpr (sizeof(T) == sizeof(double)) {
    all.s = s.p, all.shift = shift;
  } else {
    std::fill_n(space.factor, kLanes, T(1));
    Scaled(s, 0, count, space.factor, space.s);
    Scaled({shift, 1}, 0, count, space.factor, space.shift);
  }
  for (int first = 0; first < count; first += space.samples) {
    const Samples<T> x{all.s + first, all.shift + first, all.g, all.rows,
                       std::min(space.samples, count - first)};
    AllExponentials(columns, x, space.w, space.factor);
    Reciprocals(space.factor, x.count);
    Scaled(g, first, x.count, space.factor, space.g);
    AddProducts(columns, x, space.w, M);
  }
}

void Accumulate64(const Columns<double>& columns, const Space<double>& space, In s,
                  const double* shift, In g, int count, double* M) {
  AccumulateAs(columns, space, s, shift, g, count, M);
}
void Accumulate32(const Columns<float>& columns, const Space<float>& space, In s,
                  const double* shift, In g, int count, double* M) {
  AccumulateAs(columns, space, s, shift, g, count, M);
}
void Sums(const Columns<double>& columns, const Samples<double>& x, double* w, double* Z) {
  AllExponentials(columns, x, w, Z);
}

// shift_j = m_j'(s_j - m_j/2), the logit of each lane's own component.
void OwnLogits(In s, In own, int lanes, double* shift) {
  const hn::CappedTag<double, kLaneStep> d;
  const auto half = hn::Set(d, 0.5);
  for (int l = 0; l < lanes; l += static_cast<int>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (int r = 0; r < own.rows; ++r) {
      const auto m = hn::LoadU(d, own.row(r) + l);
      sum = hn::MulAdd(m, hn::NegMulAdd(half, m, hn::LoadU(d, s.row(r) + l)), sum);
    }
    hn::StoreU(sum, d, shift + l);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/aligned_allocator.h>

namespace affpcl {

HWY_EXPORT(Accumulate64);
HWY_EXPORT(Accumulate32);
HWY_EXPORT(Sums);
HWY_EXPORT(OwnLogits);

namespace {

template <class T>
struct Table {
  Table(int dim, int components, const double* means, const double* weights) {
    // An odd number of cache lines a row, so that the rows of a column fall into different sets.
    constexpr std::ptrdiff_t kLine = 64 / sizeof(T);
    const std::ptrdiff_t lines = (components + kLine - 1) / kLine, stride = (lines | 1) * kLine;
    numbers = hwy::AllocateAligned<T>(static_cast<std::size_t>(stride * (dim + 2)));
    std::fill_n(numbers.get(), stride * (dim + 2), T(0));
    T* bias = numbers.get() + stride * dim;
    columns = {dim, components, stride, numbers.get(), bias, bias + stride};
    for (int e = 0; e < components; ++e) {
      double square = 0;
      for (int r = 0; r < dim; ++r) {
        const double m = means[static_cast<std::ptrdiff_t>(e) * dim + r];
        numbers[static_cast<std::size_t>(r * stride + e)] = static_cast<T>(m);
        square += m * m;
      }
      bias[e] = static_cast<T>(-0.5 * square);
      bias[stride + e] = static_cast<T>(weights[e]);
    }
  }
  hwy::AlignedFreeUniquePtr<T[]> numbers;
  Columns<T> columns;
};

template <class T>
T* numbers_of(Scratch& scratch, std::ptrdiff_t count) {
  return reinterpret_cast<T*>(
      scratch.numbers(static_cast<std::size_t>(count) * sizeof(T) / sizeof(double) + 1));
}

template <class T>
Space<T> space_for(const Columns<T>& columns, int rows, int count, Scratch& scratch) {
  const auto block = [&](int n) { return numbers_of<T>(scratch, std::ptrdiff_t{n} * kLanes); };
  const int samples = std::min(samples_at_a_time(columns.stride, sizeof(T)), count);
  return {numbers_of<T>(scratch, samples * columns.stride),
          samples,
          block(columns.dim),
          block(1),
          block(rows),
          block(1)};
}

}  // namespace

struct Mixture::Tables {
  Table<double> wide;
  Table<float> narrow;
};

Mixture::Mixture() = default;
Mixture::~Mixture() = default;
Mixture::Mixture(Mixture&&) noexcept = default;
Mixture& Mixture::operator=(Mixture&&) noexcept = default;

Mixture::Mixture(int dim, const std::vector<double>& means, const std::vector<double>& weights) {
  const auto components = static_cast<int>(weights.size());
  tables_ = std::unique_ptr<const Tables>(
      new Tables{Table<double>(dim, components, means.data(), weights.data()),
                 Table<float>(dim, components, means.data(), weights.data())});
}

int Mixture::components() const { return tables_->wide.columns.components; }

void Mixture::accumulate(In s, In own, In g, int count, Precision precision, Scratch& scratch,
                         double* M) const {
  double* shift = scratch.numbers(kLanes);
  HWY_DYNAMIC_DISPATCH(OwnLogits)(s, own, lanes_to_write(count), shift);
  if (precision == Precision::kDouble) {
    const Columns<double>& columns = tables_->wide.columns;
    HWY_DYNAMIC_DISPATCH(Accumulate64)
    (columns, space_for(columns, g.rows, count, scratch), s, shift, g, count, M);
  } else {
    const Columns<float>& columns = tables_->narrow.columns;
    HWY_DYNAMIC_DISPATCH(Accumulate32)
    (columns, space_for(columns, g.rows, count, scratch), s, shift, g, count, M);
  }
}

void Mixture::own_ratio(In s, In own, int count, Scratch& scratch, Out rho) const {
  const Columns<double>& columns = tables_->wide.columns;
  double* shift = scratch.numbers(kLanes);
  HWY_DYNAMIC_DISPATCH(OwnLogits)(s, own, lanes_to_write(count), shift);
  const Space<double> space = space_for(columns, 0, count, scratch);
  for (int first = 0; first < count; first += space.samples) HWY_DYNAMIC_DISPATCH(Sums)
  (columns, {s.p + first, shift + first, nullptr, 0, std::min(space.samples, count - first)},
   space.w, rho.p + first);
  for (int j = 0; j < count; ++j) rho.p[j] = 1 / rho.p[j];
}

}  // namespace affpcl
#endif
