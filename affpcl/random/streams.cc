#include "affpcl/random/streams.h"

#include <algorithm>

#include "affpcl/math/instruction_sets-inl.h"

#ifndef AFFPCL_RANDOM_STREAMS_SOURCE
#define AFFPCL_RANDOM_STREAMS_SOURCE
namespace affpcl {

// Where a number comes from, but for the agent and the block of its index.
struct Origin {
  Origin(const Key& key, Purpose what)
      : replicate(key.replicate), step(key.step), purpose(static_cast<std::uint32_t>(what)) {
    auto k0 = static_cast<std::uint32_t>(key.seed);
    auto k1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (auto& pair : keys) {
      pair[0] = k0, pair[1] = k1;
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
  }
  std::uint64_t keys[10][2];  // of Philox's rounds
  std::uint32_t replicate, step, purpose;
};

}  // namespace affpcl
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/random/streams.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/elementary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

// Philox4x32-10 with each 32-bit word in a 64-bit lane, so that a multiply is one instruction. What
// is in the upper half of a lane is of no account.
template <class D>
using Words = hn::Vec<D>[4];

// The product of the low 32 bits of a and b.
template <class D>
HWY_INLINE hn::Vec<D> MulLow(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return hn::Vec<D>((a.raw & 0xffffffffu) * (b.raw & 0xffffffffu));
#else
  (void)d;
  const hn::Repartition<std::uint32_t, D> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

template <int U, class D>
HWY_INLINE void Philox(D d, const Origin& source, Words<D> (&c)[U]) {
  const auto m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round)
    for (int i = 0; i < U; ++i) {
      const auto p0 = MulLow(d, c[i][0], m0), p1 = MulLow(d, c[i][2], m1);
      c[i][0] = hn::Xor3(hn::ShiftRight<32>(p1), c[i][1], hn::Set(d, source.keys[round][0]));
      c[i][1] = p1;
      c[i][2] = hn::Xor3(hn::ShiftRight<32>(p0), c[i][3], hn::Set(d, source.keys[round][1]));
      c[i][3] = p0;
    }
}

// Two words to a uniform: 52 bits become the fraction of a number in [1, 2), minus one, plus half a
// step: in (0, 1).
template <class D>
HWY_INLINE auto ToUniform(D d, hn::Vec<D> hi, hn::Vec<D> lo) {
  const hn::RebindToFloat<D> df;
  const auto low = hn::And(lo, hn::Set(d, 0xffffffffu));
  const auto bits = hn::ShiftRight<12>(hn::Or(hn::ShiftLeft<32>(hi), low));
  const auto one_to_two = hn::BitCast(df, hn::Or(bits, hn::Set(d, 0x3FF0000000000000ull)));
  return hn::Sub(one_to_two, hn::Set(df, 1.0 - 0x1p-53));
}

// One vector of agents, from `first` on, at the pair of indices (2 block, 2 block + 1).
struct Piece {
  std::uint32_t block;
  std::uint64_t first;
  double *even, *odd;                  // odd: nullptr where it is not wanted
  const double *even_mean, *odd_mean;  // nullptr: 0
};

// Gives `use` the pairs of uniforms that U counters stand for, or the normals made of them. Several
// at a time, for each is one long chain of operations.
template <int U, class D, class Use>
HWY_INLINE void Pairs(D d, const Origin& source, bool normal, Words<D> (&c)[U], Use use) {
  const hn::RebindToFloat<D> df;
  using V = hn::Vec<hn::RebindToFloat<D>>;
  V u[U], v[U];
  Philox(d, source, c);
  for (int i = 0; i < U; ++i) {
    u[i] = ToUniform(d, c[i][1], c[i][0]), v[i] = ToUniform(d, c[i][3], c[i][2]);
    if (normal) u[i] = hn::Sqrt(hn::Mul(hn::Set(df, -2.0), Log(df, u[i])));
  }
  for (int i = 0; i < U; ++i) {
    if (normal) {
      V sine, cosine;
      SinCosTurn(df, v[i], sine, cosine);
      use(i, hn::Mul(u[i], cosine), hn::Mul(u[i], sine));
    } else {
      use(i, u[i], v[i]);
    }
  }
}

// The counter of a number: whose it is, and what for.
template <class D>
HWY_INLINE void Count(D d, const Origin& source, hn::Vec<D> agent, hn::Vec<D> block, Words<D>& c) {
  c[0] = agent;
  c[1] = hn::Set(d, std::uint64_t{source.step});
  c[2] = hn::Set(d, std::uint64_t{source.replicate});
  c[3] = hn::Or(block, hn::Set(d, std::uint64_t{source.purpose} << 24));
}

// With a one-lane tag it is the scalar stream.
template <int U, class D>
HWY_INLINE void Fill(D d, const Origin& source, bool normal, const Piece* pieces) {
  const hn::RebindToFloat<D> df;
  Words<D> c[U];
  for (int i = 0; i < U; ++i)
    Count(d, source, hn::Add(hn::Iota(d, 0), hn::Set(d, pieces[i].first)),
          hn::Set(d, std::uint64_t{pieces[i].block}), c[i]);
  using V = hn::Vec<hn::RebindToFloat<D>>;
  Pairs(d, source, normal, c, [&](int i, V u, V v) HWY_ATTR {
    const Piece& to = pieces[i];
    if (to.even_mean != nullptr) u = hn::Add(u, hn::LoadU(df, to.even_mean));
    if (to.odd_mean != nullptr) v = hn::Add(v, hn::LoadU(df, to.odd_mean));
    hn::StoreU(u, df, to.even);
    if (to.odd != nullptr) hn::StoreU(v, df, to.odd);
  });
}

void FillBlock(const Origin& source, std::uint32_t block, std::uint64_t first, int count,
               bool normal, In mean, Out rows) {
  const hn::CappedTag<std::uint64_t, kLaneStep> d;
  const auto N = static_cast<int>(hn::Lanes(d));
  constexpr int U = 5;
  // As few turns as there must be, and all about as long: nine pieces are 4 + 5.
  const std::int64_t all = std::int64_t{(rows.rows + 1) / 2} * ((count + N - 1) / N);
  if (all == 0) return;
  const std::int64_t turns = (all + U - 1) / U;
  Piece pieces[U];
  int waiting = 0;
  std::int64_t done = 0, turn = 1, until = all / turns;
  for (int r = 0; r < rows.rows; r += 2, ++block)
    for (int l = 0; l < count; l += N) {
      pieces[waiting++] = {block,
                           first + static_cast<std::uint64_t>(l),
                           rows.row(r) + l,
                           r + 1 < rows.rows ? rows.row(r + 1) + l : nullptr,
                           r < mean.rows ? mean.row(r) + l : nullptr,
                           r + 1 < mean.rows ? mean.row(r + 1) + l : nullptr};
      if (done + waiting < until) continue;
      switch (waiting) {
        case 1:
          Fill<1>(d, source, normal, pieces);
          break;
        case 2:
          Fill<2>(d, source, normal, pieces);
          break;
        case 3:
          Fill<3>(d, source, normal, pieces);
          break;
        case 4:
          Fill<4>(d, source, normal, pieces);
          break;
        default:
          Fill<U>(d, source, normal, pieces);
      }
      done += waiting, waiting = 0;
      until = all * ++turn / turns;
    }
}

// One agent's numbers from index 0 on: a lane for every pair.
void FillAgent(const Origin& source, std::uint64_t agent, bool normal, double* numbers,
               std::size_t count) {
  using D = hn::CappedTag<std::uint64_t, kLaneStep>;
  using F = hn::RebindToFloat<D>;
  const D d;
  const std::size_t N = hn::Lanes(d);
  HWY_ALIGN double pairs[2 * kLaneStep];
  for (std::size_t first = 0; first < count; first += 2 * N) {
    Words<D> c[1];
    Count(d, source, hn::Set(d, agent), hn::Add(hn::Iota(d, 0), hn::Set(d, first / 2)), c[0]);
    Pairs(d, source, normal, c, [&](int, hn::Vec<F> u, hn::Vec<F> v) HWY_ATTR {
      hn::StoreInterleaved2(u, v, F(), pairs);
    });
    std::copy_n(pairs, std::min(2 * N, count - first), numbers + first);
  }
}

void FillOne(const Origin& source, std::uint32_t block, std::uint64_t agent, bool normal,
             double* pair) {
  const Piece piece{block, agent, pair, pair + 1, nullptr, nullptr};
  Fill<1>(hn::CappedTag<std::uint64_t, 1>(), source, normal, &piece);
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(FillBlock);
HWY_EXPORT(FillAgent);
HWY_EXPORT(FillOne);

namespace {

double one(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index, bool normal) {
  double pair[4];
  HWY_DYNAMIC_DISPATCH(FillOne)
  (Origin(key, purpose), index / 2, static_cast<std::uint64_t>(agent), normal, pair);
  return pair[index % 2];
}

void block(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, bool normal,
           In mean, Out rows) {
  HWY_DYNAMIC_DISPATCH(FillBlock)
  (Origin(key, purpose), first_index / 2, static_cast<std::uint64_t>(lanes.first),
   std::min(rows.lanes, lanes_to_write(lanes.count)), normal, mean, rows);
}

}  // namespace

double uniform(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index) {
  return one(key, agent, purpose, index, false);
}
double normal(const Key& key, std::int64_t agent, Purpose purpose, std::uint32_t index) {
  return one(key, agent, purpose, index, true);
}

void uniforms_of(const Key& key, std::int64_t agent, Purpose purpose, std::span<double> numbers) {
  HWY_DYNAMIC_DISPATCH(FillAgent)
  (Origin(key, purpose), static_cast<std::uint64_t>(agent), false, numbers.data(), numbers.size());
}
void normals_of(const Key& key, std::int64_t agent, Purpose purpose, std::span<double> numbers) {
  HWY_DYNAMIC_DISPATCH(FillAgent)
  (Origin(key, purpose), static_cast<std::uint64_t>(agent), true, numbers.data(), numbers.size());
}

int categorical(std::span<const double> cumulative, double u) {
  auto it = std::upper_bound(cumulative.begin(), cumulative.end(), u);
  // Rounding may leave the sum a little below u: then the last state that has any probability.
  if (it == cumulative.end())
    it = std::lower_bound(cumulative.begin(), cumulative.end(), cumulative.back());
  return static_cast<int>(it - cumulative.begin());
}

void uniforms(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows) {
  block(key, lanes, purpose, first_index, false, {}, rows);
}
void normals(const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index, Out rows) {
  block(key, lanes, purpose, first_index, true, {}, rows);
}
void normals_about(In mean, const Key& key, Lanes lanes, Purpose purpose, std::uint32_t first_index,
                   Out rows) {
  block(key, lanes, purpose, first_index, true, mean, rows);
}

}  // namespace affpcl
#endif
