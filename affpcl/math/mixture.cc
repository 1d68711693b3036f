#include "affpcl/math/mixture.h"

#include <algorithm>
#include <cstddef>
#include <numbers>

#include "affpcl/math/instruction_sets-inl.h"

#ifndef AFFPCL_MATH_MIXTURE_TABLE
#define AFFPCL_MATH_MIXTURE_TABLE
namespace affpcl {

constexpr int kVectorBytes = 64;              // bytes of a vector
constexpr std::size_t kCacheBytes = 1 << 20;  // what a tile of exponentials may take

// Components come in panels of four vectors, one after the other in memory: the last is padded.
template <class T>
constexpr int kPanel = 4 * kVectorBytes / static_cast<int>(sizeof(T));

// Panel by panel: the means' rows, then -|m|^2/2, both times log2(e), for logits are those of 2;
// then the weights.
template <class T>
struct Columns {
  int dim = 0, components = 0, panels = 0;
  const T* numbers = nullptr;
  const T* panel(int p) const {
    return numbers + static_cast<std::ptrdiff_t>(p) * (dim + 2) * kPanel<T>;
  }
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
  T* w;         // [panels][samples][kPanel]
  int samples;  // taken at a time
  T *s, *shift, *g, *factor;
};

// How many samples are taken at a time, so that their exponentials stay in the cache: 64 or a half,
// a quarter of it. It depends on sizes alone.
inline int samples_at_a_time(int panels) {
  const std::size_t each = static_cast<std::size_t>(panels) * 4 * kVectorBytes;
  int samples = kLanes;
  while (samples > 16 && static_cast<std::size_t>(samples) * each > kCacheBytes) samples /= 2;
  return samples;
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
constexpr bool kWide = HWY_TARGET <= HWY_AVX3;  // 32 registers: tiles of up to six by four vectors
template <class T>
HWY_INLINE int Width() {
  return static_cast<int>(hn::Lanes(Tag<T>()));
}

// Vectors of a panel that hold components.
template <class T>
HWY_INLINE int VectorsOf(const Columns<T>& columns, int panel) {
  const int N = Width<T>(), left = columns.components - panel * kPanel<T>;
  return (std::min(left, kPanel<T>) + N - 1) / N;
}

// Logits of J samples and C vectors of a panel's components.
template <int J, int C, class T>
HWY_INLINE void Logits(const T* panel, int dim, const T* s, const T* shift,
                       hn::Vec<Tag<T>> (&sum)[J][C]) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  const T* bias = panel + static_cast<std::ptrdiff_t>(dim) * kPanel<T>;
  for (int j = 0; j < J; ++j)
    for (int v = 0; v < C; ++v)
      sum[j][v] = hn::Sub(hn::Load(d, bias + v * N), hn::Set(d, shift[j]));
  for (; panel != bias; panel += kPanel<T>, s += kLanes) {
    V row[C];
    for (int v = 0; v < C; ++v) row[v] = hn::Load(d, panel + v * N);
    for (int j = 0; j < J; ++j) {
      const V x = hn::Set(d, s[j]);
      for (int v = 0; v < C; ++v) sum[j][v] = hn::MulAdd(x, row[v], sum[j][v]);
    }
  }
}

template <int J, int C, class T>
HWY_INLINE void LogitTile(const T* panel, int dim, const T* s, const T* shift, T* w) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sum[J][C];
  Logits(panel, dim, s, shift, sum);
  for (int j = 0; j < J; ++j)
    for (int v = 0; v < C; ++v) hn::Store(sum[j][v], d, w + j * kPanel<T> + v * Width<T>());
}

// Where all components are C vectors the logits need not leave the registers before their
// exponentials.
template <int J, int C, class T>
HWY_INLINE void FewTile(const Columns<T>& columns, const T* s, const T* shift, T* w, T* Z) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  V logit[J][C], sum[J];
  Logits(columns.numbers, columns.dim, s, shift, logit);
  for (int j = 0; j < J; ++j) sum[j] = hn::Zero(d);
  const T* weights = columns.numbers + (columns.dim + 1) * kPanel<T>;
  for (int v = 0; v < C; ++v) {
    const V weight = hn::Load(d, weights + v * Width<T>());
    for (int j = 0; j < J; ++j) {
      const V x = Exp2(d, logit[j][v]);
      hn::Store(x, d, w + j * kPanel<T> + v * Width<T>());
      sum[j] = hn::MulAdd(x, weight, sum[j]);
    }
  }
  LaneSumsOf(d, sum, Z);
}

template <int C, class T>
HWY_INLINE void FewExponentials(const Columns<T>& columns, const Samples<T>& x, T* w, T* Z) {
  int j = 0;
  for (; j + 4 <= x.count; j += 4)
    FewTile<4, C>(columns, x.s + j, x.shift + j, w + j * kPanel<T>, Z + j);
  for (; j < x.count; ++j) FewTile<1, C>(columns, x.s + j, x.shift + j, w + j * kPanel<T>, Z + j);
}

// 2 to the power of J samples' logits at a panel, and what that adds to their sums.
template <int J, class T>
HWY_INLINE void ExpTile(const T* weights, int vectors, T* w, T* sums) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  V sum[J];
  for (int j = 0; j < J; ++j) sum[j] = hn::Load(d, sums + j * N);
  for (int v = 0; v < vectors; ++v) {
    const V weight = hn::Load(d, weights + v * N);
    for (int j = 0; j < J; ++j) {
      T* p = w + j * kPanel<T> + v * N;
      const V x = Exp2(d, hn::Load(d, p));
      hn::Store(x, d, p);
      sum[j] = hn::MulAdd(x, weight, sum[j]);
    }
  }
  for (int j = 0; j < J; ++j) hn::Store(sum[j], d, sums + j * N);
}

template <int J, class T>
HWY_INLINE void Exponentials(const T* panel, int dim, int vectors, const T* s, const T* shift, T* w,
                             T* sums) {
  const int N = Width<T>();
  int v = 0;
  for (; kWide && v + 4 <= vectors; v += 4)
    LogitTile<J, 4>(panel + v * N, dim, s, shift, w + v * N);
  for (; v + 2 <= vectors; v += 2) LogitTile<J, 2>(panel + v * N, dim, s, shift, w + v * N);
  for (; v < vectors; ++v) LogitTile<J, 1>(panel + v * N, dim, s, shift, w + v * N);
  ExpTile<J>(panel + static_cast<std::ptrdiff_t>(dim + 1) * kPanel<T>, vectors, w, sums);
}

// w[j][e] = 2^(l_e(s_j) - l_own(s_j)) and Z[j] = sum_e weight_e w[j][e], panel after panel: its
// means stay in the first cache.
template <class T>
void AllExponentials(const Columns<T>& columns, const Samples<T>& x, T* w, int samples, T* Z) {
  const Tag<T> d;
  const int N = Width<T>();
  if (kWide && columns.panels == 1) {
    const int vectors = VectorsOf(columns, 0);
    if (vectors == 4) return FewExponentials<4>(columns, x, w, Z);
    if (vectors == 3) return FewExponentials<3>(columns, x, w, Z);
    if (vectors == 2) return FewExponentials<2>(columns, x, w, Z);
    return FewExponentials<1>(columns, x, w, Z);
  }
  HWY_ALIGN T sums[kLanes * (kVectorBytes / sizeof(T))];
  std::fill_n(sums, x.count * N, T(0));
  for (int p = 0; p < columns.panels; ++p, w += samples * kPanel<T>) {
    const T* panel = columns.panel(p);
    const int vectors = VectorsOf(columns, p);
    int j = 0;
    for (; kWide && j + 6 <= x.count; j += 6)
      Exponentials<6>(panel, columns.dim, vectors, x.s + j, x.shift + j, w + j * kPanel<T>,
                      sums + j * N);
    for (; j + 4 <= x.count; j += 4)
      Exponentials<4>(panel, columns.dim, vectors, x.s + j, x.shift + j, w + j * kPanel<T>,
                      sums + j * N);
    for (; j < x.count; ++j)
      Exponentials<1>(panel, columns.dim, vectors, x.s + j, x.shift + j, w + j * kPanel<T>,
                      sums + j * N);
  }
  for (int j = 0; j < x.count; ++j)
    Z[j] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + j * N)));
}

// to += the first `width` numbers of x, in double.
HWY_INLINE void AddPart(hn::Vec<Tag<double>> x, int width, double* to) {
  const Tag<double> d;
  const int N = Width<double>();
  if (width >= N) {
    hn::StoreU(hn::Add(hn::LoadU(d, to), x), d, to);
  } else if (kMasks) {
    const auto part = hn::FirstN(d, static_cast<std::size_t>(std::max(width, 0)));
    hn::BlendedStore(hn::Add(hn::MaskedLoad(part, d, to), x), part, d, to);
  } else {
    HWY_ALIGN double numbers[kVectorBytes / sizeof(double)];
    hn::Store(x, d, numbers);
    for (int k = 0; k < width; ++k) to[k] += numbers[k];
  }
}
HWY_INLINE void AddPart(hn::Vec<Tag<float>> x, int width, double* to) {
  const Tag<double> d;
  const hn::Rebind<float, Tag<double>> piece;
  HWY_ALIGN float
      numbers[kVectorBytes / sizeof(float)];  // promoted on their way from memory: fewer operations
  hn::Store(x, Tag<float>(), numbers);
  for (int k = 0; k < Width<float>(); k += Width<double>())
    AddPart(hn::PromoteTo(d, hn::Load(piece, numbers + k)), width - k, to + k);
}

// M[r][e] += sum_j g[r][j] w[j][e] for R rows and C vectors of components, `width` of them real.
template <int R, int C, class T>
HWY_INLINE void ProductTile(const T* g, const T* w, int count, int width, std::ptrdiff_t stride,
                            double* M) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const int N = Width<T>();
  V sum[R][C];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < C; ++v) sum[r][v] = hn::Zero(d);
  for (int j = 0; j < count; ++j, w += kPanel<T>) {
    V x[C];
    for (int v = 0; v < C; ++v) x[v] = hn::Load(d, w + v * N);
    for (int r = 0; r < R; ++r) {
      const V y = hn::Set(d, g[r * kLanes + j]);
      for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(y, x[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r, M += stride)
    for (int v = 0, e = 0; v < C; ++v, e += N) AddPart(sum[r][v], width - e, M + e);
}

template <int C, class T>
HWY_INLINE void ProductColumns(const Samples<T>& x, const T* w, int width, std::ptrdiff_t stride,
                               double* M) {
  int r = 0;
  for (; kWide && r + 5 <= x.rows && (x.rows - r) % 4 != 0; r += 5)
    ProductTile<5, C>(x.g + r * kLanes, w, x.count, width, stride, M + r * stride);
  for (; r + 4 <= x.rows; r += 4)
    ProductTile<4, C>(x.g + r * kLanes, w, x.count, width, stride, M + r * stride);
  for (; r < x.rows; ++r)
    ProductTile<1, C>(x.g + r * kLanes, w, x.count, width, stride, M + r * stride);
}

template <class T>
void AddProducts(const Columns<T>& columns, const Samples<T>& x, const T* w, int samples,
                 double* M) {
  const int N = Width<T>();
  for (int p = 0; p < columns.panels; ++p, w += samples * kPanel<T>) {
    const int vectors = VectorsOf(columns, p);
    const auto columns_from = [&]<int C>(int v) HWY_ATTR {
      const int e = p * kPanel<T> + v * N;
      ProductColumns<C>(x, w + v * N, std::min(C * N, columns.components - e), columns.components,
                        M + e);
    };
    int v = 0;
    for (; kWide && v + 4 <= vectors; v += 4) columns_from.template operator()<4>(v);
    for (; kWide && v + 3 <= vectors; v += 3) columns_from.template operator()<3>(v);
    for (; v + 2 <= vectors; v += 2) columns_from.template operator()<2>(v);
    for (; v < vectors; ++v) columns_from.template operator()<1>(v);
  }
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
    AllExponentials(columns, x, space.w, space.samples, space.factor);
    Reciprocals(space.factor, x.count);
    Scaled(g, first, x.count, space.factor, space.g);
    AddProducts(columns, x, space.w, space.samples, M);
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
void Sums(const Columns<double>& columns, const Samples<double>& x, double* w, int samples,
          double* Z) {
  AllExponentials(columns, x, w, samples, Z);
}

// shift_j = log2(e) m_j'(s_j - m_j/2), the logit of each lane's own component.
void OwnLogits(In s, In own, int lanes, double* shift) {
  const hn::CappedTag<double, kLaneStep> d;
  const auto half = hn::Set(d, 0.5);
  for (int l = 0; l < lanes; l += static_cast<int>(hn::Lanes(d))) {
    auto sum = hn::Zero(d);
    for (int r = 0; r < own.rows; ++r) {
      const auto m = hn::LoadU(d, own.row(r) + l);
      sum = hn::MulAdd(m, hn::NegMulAdd(half, m, hn::LoadU(d, s.row(r) + l)), sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(d, std::numbers::log2e)), d, shift + l);
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
    const int panels = (components + kPanel<T> - 1) / kPanel<T>;
    const auto size = static_cast<std::size_t>(panels) * static_cast<std::size_t>(dim + 2) *
                      static_cast<std::size_t>(kPanel<T>);
    numbers = hwy::AllocateAligned<T>(size);
    std::fill_n(numbers.get(), size, T(0));
    columns = {dim, components, panels, numbers.get()};
    for (int e = 0; e < components; ++e) {
      T* column = numbers.get() + (columns.panel(e / kPanel<T>) - columns.numbers) + e % kPanel<T>;
      double square = 0;
      for (int r = 0; r < dim; ++r) {
        const double m = means[static_cast<std::ptrdiff_t>(e) * dim + r];
        column[static_cast<std::ptrdiff_t>(r) * kPanel<T>] =
            static_cast<T>(std::numbers::log2e * m);
        square += m * m;
      }
      column[static_cast<std::ptrdiff_t>(dim) * kPanel<T>] =
          static_cast<T>(-0.5 * std::numbers::log2e * square);
      column[static_cast<std::ptrdiff_t>(dim + 1) * kPanel<T>] = static_cast<T>(weights[e]);
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
  const int samples = std::min(samples_at_a_time(columns.panels), count);
  return {numbers_of<T>(scratch, std::ptrdiff_t{samples} * columns.panels * kPanel<T>),
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
   space.w, space.samples, rho.p + first);
  for (int j = 0; j < count; ++j) rho.p[j] = 1 / rho.p[j];
}

}  // namespace affpcl
#endif
