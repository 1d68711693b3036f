#include "affpcl/random/streams.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/random/streams.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Philox4x32-10 with each 32-bit word in a 64-bit lane, so that a multiply is one instruction.
template <class D>
struct Words {
  hn::Vec<D> c0, c1, c2, c3;
};

// The product of the low 32 bits of a and b.
template <class D>
HWY_INLINE hn::Vec<D> MulLow(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return hn::Vec<D>(a.raw * b.raw);
#else
  (void)d;
  const hn::Repartition<std::uint32_t, D> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

template <class D>
HWY_INLINE Words<D> Philox(D d, Words<D> c, std::uint32_t k0, std::uint32_t k1) {
  const auto low = hn::Set(d, 0xffffffffu);
  const auto m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = MulLow(d, c.c0, m0), p1 = MulLow(d, c.c2, m1);
    const auto n0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c.c1), hn::Set(d, std::uint64_t{k0}));
    const auto n2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c.c3), hn::Set(d, std::uint64_t{k1}));
    c = {n0, hn::And(p1, low), n2, hn::And(p0, low)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Two words to a uniform: 52 bits become the fraction of a number in [1, 2), minus one, plus half a
// step: in (0, 1).
template <class D>
HWY_INLINE auto ToUniform(D d, hn::Vec<D> hi, hn::Vec<D> lo) {
  const hn::RebindToFloat<D> df;
  const auto bits = hn::ShiftRight<12>(hn::Or(hn::ShiftLeft<32>(hi), lo));
  const auto one_to_two = hn::BitCast(df, hn::Or(bits, hn::Set(d, 0x3FF0000000000000ull)));
  return hn::Sub(one_to_two, hn::Set(df, 1.0 - 0x1p-53));
}

// Fills row pairs (2b, 2b+1) of `count` agents from `first`. With a one-lane tag it is the scalar
// stream.
template <class D>
void Fill(D d, std::uint64_t seed, std::uint32_t replicate, std::uint32_t step,
          std::uint32_t purpose, std::uint32_t block, std::uint64_t first, int count, bool normal,
          double* row0, double* row1) {
  const hn::RebindToFloat<D> df;
  const int N = static_cast<int>(hn::Lanes(d));
  for (int l = 0; l < count; l += N) {
    Words<D> c;
    c.c0 = hn::And(hn::Iota(d, first + static_cast<std::uint64_t>(l)), hn::Set(d, 0xffffffffu));
    c.c1 = hn::Set(d, std::uint64_t{step});
    c.c2 = hn::Set(d, std::uint64_t{replicate});
    c.c3 = hn::Set(d, std::uint64_t{(purpose << 24) | block});
    c = Philox(d, c, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    auto u = ToUniform(d, c.c1, c.c0), v = ToUniform(d, c.c3, c.c2);
    if (normal) {
      const auto r = hn::Sqrt(hn::Mul(hn::Set(df, -2.0), hn::Log(df, u)));
      const auto angle = hn::Mul(v, hn::Set(df, 6.283185307179586476925));
      u = hn::Mul(r, hn::Cos(df, angle));
      v = hn::Mul(r, hn::Sin(df, angle));
    }
    hn::StoreU(u, df, row0 + l);
    if (row1 != nullptr) hn::StoreU(v, df, row1 + l);
  }
}

void FillBlock(std::uint64_t seed, std::uint32_t replicate, std::uint32_t step,
               std::uint32_t purpose, std::uint32_t block, std::uint64_t first, int count,
               bool normal, double* row0, double* row1) {
  Fill(hn::ScalableTag<std::uint64_t>(), seed, replicate, step, purpose, block, first, count,
       normal, row0, row1);
}

void FillOne(std::uint64_t seed, std::uint32_t replicate, std::uint32_t step, std::uint32_t purpose,
             std::uint32_t block, std::uint64_t agent, bool normal, double* pair) {
  double second[4];
  Fill(hn::CappedTag<std::uint64_t, 1>(), seed, replicate, step, purpose, block, agent, 1, normal,
       pair, second);
  pair[1] = second[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(FillBlock);
HWY_EXPORT(FillOne);

namespace {

double one(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index, bool normal) {
  double pair[4];
  HWY_DYNAMIC_DISPATCH(FillOne)
  (key.seed, key.replicate, key.step, static_cast<std::uint32_t>(purpose), index / 2,
   static_cast<std::uint64_t>(agent), normal, pair);
  return pair[index % 2];
}

void block(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows,
           bool normal) {
  const auto fill = HWY_DYNAMIC_DISPATCH(FillBlock);
  const int count = std::min(rows.lanes, lanes_to_write(lanes.count));
  for (int r = 0; r < rows.rows; r += 2)
    fill(key.seed, key.replicate, key.step, static_cast<std::uint32_t>(purpose),
         (first_index + static_cast<std::uint32_t>(r)) / 2, static_cast<std::uint64_t>(lanes.first),
         count, normal, rows.row(r), r + 1 < rows.rows ? rows.row(r + 1) : nullptr);
}

}  // namespace

double uniform(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index) {
  return one(key, agent, purpose, index, false);
}
double normal(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index) {
  return one(key, agent, purpose, index, true);
}

int categorical(std::span<const double> cumulative, double u) {
  auto it = std::upper_bound(cumulative.begin(), cumulative.end(), u);
  // Rounding may leave the sum a little below u: then the last state that has any probability.
  if (it == cumulative.end())
    it = std::lower_bound(cumulative.begin(), cumulative.end(), cumulative.back());
  return static_cast<int>(it - cumulative.begin());
}

void uniforms(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows) {
  block(key, lanes, purpose, first_index, rows, false);
}
void normals(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows) {
  block(key, lanes, purpose, first_index, rows, true);
}

}  // namespace affpcl
#endif
