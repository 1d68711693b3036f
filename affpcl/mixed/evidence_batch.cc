#include "affpcl/mixed/evidence_batch.h"

#include <cmath>

#include "affpcl/math/instruction_sets-inl.h"

// Highway compiles the namespace HWY_NAMESPACE of this file once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/mixed/evidence_batch.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using T = hn::CappedTag<double, mixed::kBatch>;
using V = hn::Vec<T>;
constexpr std::size_t kLogarithm = 8;  // pivots in a product before its logarithm is taken

inline std::size_t Width() { return hn::Lanes(T()); }

// Numbers of several agents, a vector each: row i begins `stride` vectors behind row i - 1.
struct Lanes {
  double* p;
  std::size_t stride;
  V operator()(std::size_t i, std::size_t j) const {
    return hn::Load(T(), p + (i * stride + j) * Width());
  }
  void set(std::size_t i, std::size_t j, V value) const {
    hn::Store(value, T(), p + (i * stride + j) * Width());
  }
  double* at(std::size_t i, std::size_t j) const { return p + (i * stride + j) * Width(); }
};

// Where the agents of a batch are in memory, `size` numbers each. Lanes behind the last agent are
// those of the first once more.
class Agents {
 public:
  Agents(std::size_t from, std::size_t count, std::size_t size) {
    const hn::RebindToSigned<T> tag;
    HWY_ALIGN std::int64_t index[mixed::kBatch];
    for (std::size_t l = 0; l < Width(); ++l)
      index[l] = static_cast<std::int64_t>((from + l < count ? from + l : from) * size);
    index_ = hn::Load(tag, index);
  }
  V load(const double* p) const { return hn::GatherIndex(T(), p, index_); }
  void store(V value, double* p) const { hn::ScatterIndex(value, T(), p, index_); }

 private:
  hn::Vec<hn::RebindToSigned<T>> index_;
};

// sums[r] += row r of A times x, over `count` vectors.
template <int R>
HWY_INLINE void AddDots(Lanes A, std::size_t row, const double* x, std::size_t count,
                        V (&sums)[R]) {
  const double* p[R];
  for (int r = 0; r < R; ++r) p[r] = A.at(row + static_cast<std::size_t>(r), 0);
  for (std::size_t k = 0; k < count * Width(); k += Width()) {
    const V y = hn::Load(T(), x + k);
    for (int r = 0; r < R; ++r) sums[r] = hn::MulAdd(hn::Load(T(), p[r] + k), y, sums[r]);
  }
}

// f(row, sums, R) for rows [from, to) of A in fours: their products with x over length(last row).
template <class Length, class F>
HWY_INLINE void EachDot(Lanes A, std::size_t from, std::size_t to, const double* x, Length length,
                        F f) {
  std::size_t i = from;
  for (; i + 4 <= to; i += 4) {
    V sums[4] = {hn::Zero(T()), hn::Zero(T()), hn::Zero(T()), hn::Zero(T())};
    AddDots<4>(A, i, x, length(i + 3), sums);
    for (std::size_t r = 0; r < 4; ++r) f(i + r, sums[r]);
  }
  for (; i < to; ++i) {
    V sums[1] = {hn::Zero(T())};
    AddDots<1>(A, i, x, length(i), sums);
    f(i, sums[0]);
  }
}

// Row i of A times a matrix that all agents share, whose entry (m, k) is shared[m * row + k * column]:
// f(k, sum) for every k < n.
template <class F>
HWY_INLINE void EachShared(Lanes A, std::size_t i, const double* shared, std::size_t row,
                           std::size_t column, std::size_t d, std::size_t n, F f) {
  std::size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    V sums[4] = {hn::Zero(T()), hn::Zero(T()), hn::Zero(T()), hn::Zero(T())};
    for (std::size_t m = 0; m < d; ++m) {
      const V a = A(i, m);
      for (std::size_t r = 0; r < 4; ++r)
        sums[r] = hn::MulAdd(a, hn::Set(T(), shared[m * row + (k + r) * column]), sums[r]);
    }
    for (std::size_t r = 0; r < 4; ++r) f(k + r, sums[r]);
  }
  for (; k < n; ++k) {
    V sum = hn::Zero(T());
    for (std::size_t m = 0; m < d; ++m)
      sum = hn::MulAdd(A(i, m), hn::Set(T(), shared[m * row + k * column]), sum);
    f(k, sum);
  }
}

// The lower triangle of symmetric matrices, and above it.
HWY_INLINE void LoadSymmetric(const Agents& agents, const double* from, std::size_t d, Lanes to) {
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const V value = agents.load(from + i * d + j);
      to.set(i, j, value);
      to.set(j, i, value);
    }
}

// K becomes C with K = C C', M becomes C^-1; zeros above the diagonal of M. log |K| is added.
HWY_INLINE void Factor(Lanes K, Lanes M, std::size_t d, double* log_determinant) {
  V product = hn::Set(T(), 1.0);
  HWY_ALIGN double pivots[mixed::kBatch];
  for (std::size_t j = 0; j < d; ++j) {
    V square = K(j, j);
    for (std::size_t k = 0; k < j; ++k) square = hn::NegMulAdd(K(j, k), K(j, k), square);
    product = hn::Mul(product, square);
    if ((j + 1) % kLogarithm == 0 || j + 1 == d) {
      hn::Store(product, T(), pivots);
      for (std::size_t l = 0; l < Width(); ++l) log_determinant[l] += std::log(pivots[l]);
      product = hn::Set(T(), 1.0);
    }
    const V inverse = hn::Div(hn::Set(T(), 1.0), hn::Sqrt(square));
    M.set(j, j, inverse);
    for (std::size_t k = j + 1; k < d; ++k) M.set(j, k, hn::Zero(T()));
    EachDot(
        K, j + 1, d, K.at(j, 0), [=](std::size_t) HWY_ATTR { return j; },
        [=](std::size_t i, V sum)
            HWY_ATTR { K.set(i, j, hn::Mul(hn::Sub(K(i, j), sum), inverse)); });
  }
  // Row i of C^-1 from the rows above it.
  for (std::size_t i = 1; i < d; ++i) {
    const V scale = hn::Neg(M(i, i));
    for (std::size_t j = 0; j < i; ++j) {
      V even = hn::Zero(T()), odd = hn::Zero(T());
      std::size_t k = j;
      for (; k + 2 <= i; k += 2) {
        even = hn::MulAdd(K(i, k), M(k, j), even);
        odd = hn::MulAdd(K(i, k + 1), M(k + 1, j), odd);
      }
      if (k < i) even = hn::MulAdd(K(i, k), M(k, j), even);
      M.set(i, j, hn::Mul(scale, hn::Add(even, odd)));
    }
  }
}

HWY_INLINE void FirstOf(const mixed::FirstPass& in, std::size_t from) {
  const std::size_t d = in.d, dd = d * d, N = Width();
  const Agents square(from, in.count, dd), column(from, in.count, d), number(from, in.count, 1);
  const Lanes A{in.space, d}, AL{A.at(d, 0), d}, C{AL.at(d, 0), d}, M{C.at(d, 0), d},
      Z{M.at(d, 0), d};
  const Lanes b{Z.at(d, 0), 1}, w{b.at(d, 0), 1}, Cw{w.at(d, 0), 1};
  const V wide = number.load(in.wide), over_s2 = hn::Set(T(), 1 / in.s2);
  const V scale = hn::Mul(hn::Sqrt(wide), over_s2), scale_K = hn::Mul(wide, over_s2);
  LoadSymmetric(square, in.A, d, A);
  for (std::size_t j = 0; j < d; ++j) b.set(j, 0, column.load(in.b + j));
  const auto whole = [=](std::size_t) HWY_ATTR { return d; };
  const auto own = [=](std::size_t i) HWY_ATTR { return i + 1; };
  const auto set_K = [=](std::size_t i, std::size_t j, V value) HWY_ATTR {
    C.set(i, j, hn::MulAdd(scale_K, value, i == j ? hn::Set(T(), 1.0) : hn::Zero(T())));
  };
  if (in.diagonal) {
    for (std::size_t j = 0; j < d; ++j) {
      const V root = hn::Set(T(), in.root[j * d + j]);
      w.set(j, 0, hn::Mul(root, b(j, 0)));
      for (std::size_t k = 0; k < d; ++k)
        AL.set(j, k, hn::Mul(hn::Set(T(), in.root[k * d + k]), A(j, k)));
      for (std::size_t k = 0; k <= j; ++k) set_K(j, k, hn::Mul(root, AL(j, k)));
    }
  } else {
    for (std::size_t j = 0; j < d; ++j)
      EachShared(A, j, in.root, 1, d, d, d,
                 [=](std::size_t k, V sum) HWY_ATTR { AL.set(j, k, sum); });
    const Lanes b_row{b.p, d}, w_row{w.p, d};
    EachShared(b_row, 0, in.root, 1, d, d, d,
               [=](std::size_t k, V sum) HWY_ATTR { w_row.set(0, k, sum); });
    // (A L)' times L, a row at a time: Z holds (A L)' until it is needed.
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) Z.set(k, j, AL(j, k));
    for (std::size_t i = 0; i < d; ++i)
      EachShared(Z, i, in.root, 1, d, d, i + 1,
                 [=](std::size_t k, V sum) HWY_ATTR { set_K(i, k, sum); });
  }
  HWY_ALIGN double log_determinant[mixed::kBatch] = {};
  Factor(C, M, d, log_determinant);
  for (std::size_t j = 0; j < d; ++j)
    EachDot(M, 0, d, AL.at(j, 0), own,
            [=](std::size_t k, V sum) HWY_ATTR { Z.set(j, k, hn::Mul(scale, sum)); });
  V explained = hn::Zero(T()), left = hn::Set(T(), static_cast<double>(d));
  EachDot(M, 0, d, w.p, own, [&](std::size_t k, V sum) HWY_ATTR {
    const V value = hn::Mul(scale, sum);
    Cw.set(k, 0, value);
    explained = hn::MulAdd(value, value, explained);
  });
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) left = hn::NegMulAdd(M(i, j), M(i, j), left);
  EachDot(Z, 0, d, Cw.p, whole, [=](std::size_t j, V sum) HWY_ATTR {
    column.store(hn::NegMulAdd(hn::Set(T(), 1.0), sum, hn::Mul(b(j, 0), over_s2)), in.v + j);
  });
  for (std::size_t j = 0; j < d; ++j)
    EachDot(Z, j, d, Z.at(j, 0), whole, [=](std::size_t i, V sum) HWY_ATTR {
      const V value = hn::MulSub(A(i, j), over_s2, sum);
      square.store(value, in.W + i * d + j);
      if (i != j) square.store(value, in.W + j * d + i);
    });
  HWY_ALIGN double numbers[2][mixed::kBatch];
  hn::Store(hn::MulSub(number.load(in.yy), over_s2, explained), T(), numbers[0]);
  hn::Store(left, T(), numbers[1]);
  for (std::size_t l = 0; l < N && from + l < in.count; ++l) {
    double* const rest = in.rest[from + l];
    rest[0] = numbers[0][l];
    rest[1] = in.rows[from + l] * std::log(in.s2) + log_determinant[l];
    rest[2] = numbers[1][l];
  }
}

void RunFirst(const mixed::FirstPass& in) {
  for (std::size_t from = 0; from < in.count; from += Width()) FirstOf(in, from);
}

HWY_INLINE void SecondOf(const mixed::SecondPass& in, std::size_t from) {
  const std::size_t d = in.d;
  const Agents square(from, in.count, d * d);
  const Lanes W{in.space, d}, HW{W.at(d, 0), d};
  LoadSymmetric(square, in.W, d, W);
  V trace = hn::Zero(T());
  for (std::size_t i = 0; i < d; ++i)
    EachShared(W, i, in.centre_cov, d, 1, d, d, [&](std::size_t k, V sum) HWY_ATTR {
      HW.set(i, k, sum);
      if (i == k) trace = hn::Add(trace, sum);
    });
  for (std::size_t j = 0; j < d; ++j)
    EachDot(
        W, j, in.diagonal ? j + 1 : d, HW.at(j, 0), [=](std::size_t) HWY_ATTR { return d; },
        [=](std::size_t i, V sum) HWY_ATTR {
          square.store(sum, in.WHW + i * d + j);
          if (i != j) square.store(sum, in.WHW + j * d + i);
        });
  HWY_ALIGN double numbers[mixed::kBatch];
  hn::Store(trace, T(), numbers);
  for (std::size_t l = 0; l < Width() && from + l < in.count; ++l) in.traces[from + l] = numbers[l];
}

void RunSecond(const mixed::SecondPass& in) {
  for (std::size_t from = 0; from < in.count; from += Width()) SecondOf(in, from);
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl::mixed {

HWY_EXPORT(RunFirst);
HWY_EXPORT(RunSecond);

void first_pass(const FirstPass& batch) { HWY_DYNAMIC_DISPATCH(RunFirst)(batch); }
void second_pass(const SecondPass& batch) { HWY_DYNAMIC_DISPATCH(RunSecond)(batch); }

}  // namespace affpcl::mixed
#endif
