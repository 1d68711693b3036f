#include "affpcl/method/guard_rows.h"

#include "affpcl/math/instruction_sets-inl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/method/guard_rows.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

#include "affpcl/math/lane_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

// Rows of a block are offsets far below 2^31.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)
using D = hn::CappedTag<double, kLaneStep>;
using V = hn::Vec<D>;

HWY_INLINE V At(const double* p, int r, int l) { return hn::LoadU(D(), p + r * kLanes + l); }
HWY_INLINE void Put(V x, double* p, int r, int l) { hn::StoreU(x, D(), p + r * kLanes + l); }

// f(l) for every vector of lanes.
template <class F>
HWY_INLINE void EachVector(int lanes, F f) {
  const int N = static_cast<int>(hn::Lanes(D()));
  for (int l = 0; l < lanes; l += N) f(l);
}

void Guard(In g, Out h, Out hbar, const double* c, const double* s, const double* share,
           GuardSums& sums) {
  EachVector(h.lanes, [&](int l) HWY_ATTR {
    const V weight = hn::LoadU(D(), c + l), off = hn::LoadU(D(), s + l),
            newest = hn::LoadU(D(), share + l);
    V gh = hn::Zero(D()), hh = gh, square = gh;
    for (int r = 0; r < h.rows; ++r) {
      const V now = At(h.p, r, l), mean = At(hbar.p, r, l),
              next = hn::MulAdd(newest, hn::Sub(now, mean), mean);
      gh = hn::MulAdd(At(g.p, r, l), now, gh);
      hh = hn::MulAdd(now, now, hh);
      square = hn::MulAdd(next, next, square);
      Put(hn::Mul(weight, hn::NegMulAdd(off, mean, now)), h.p, r, l);
      Put(next, hbar.p, r, l);
    }
    hn::StoreU(gh, D(), sums.gh + l);
    hn::StoreU(hh, D(), sums.hh + l);
    hn::StoreU(square, D(), sums.square + l);
  });
}

void Combination(const CombinationRows& rows, const double* scale, const double* moved,
                 CombinationSums& sums) {
  EachVector(rows.g.lanes, [&](int l) HWY_ATTR {
    const V by = hn::LoadU(D(), scale + l), step = hn::LoadU(D(), moved + l);
    V ee = hn::Zero(D()), eh = ee, hh = ee, uphill = ee, square = ee, carried = ee, cross = ee;
    for (int r = 0; r < rows.g.rows; ++r) {
      const V correction = At(rows.correction.p, r, l), g = hn::Mul(by, At(rows.own.p, r, l)),
              h = hn::Mul(by, correction), de = hn::Sub(g, At(rows.g.p, r, l)),
              dh = hn::Sub(h, At(rows.h.p, r, l)), before = At(rows.before.p, r, l),
              delta = hn::Sub(At(rows.x.p, r, l), At(rows.y.p, r, l)),
              kept = hn::NegMulAdd(step, correction, delta);
      Put(g, rows.g.p, r, l);
      Put(h, rows.h.p, r, l);
      ee = hn::MulAdd(de, de, ee);
      eh = hn::MulAdd(de, dh, eh);
      hh = hn::MulAdd(dh, dh, hh);
      uphill = hn::MulAdd(before, g, uphill);
      square = hn::MulAdd(delta, delta, square);
      carried = hn::MulAdd(kept, kept, carried);
      cross = hn::MulAdd(before, kept, cross);
    }
    const V half = hn::Set(D(), 0.5);
    hn::StoreU(hn::Mul(half, ee), D(), sums.ee + l);
    hn::StoreU(hn::Mul(half, eh), D(), sums.eh + l);
    hn::StoreU(hn::Mul(half, hh), D(), sums.hh + l);
    hn::StoreU(uphill, D(), sums.uphill + l);
    hn::StoreU(square, D(), sums.square + l);
    hn::StoreU(carried, D(), sums.carried + l);
    hn::StoreU(cross, D(), sums.cross + l);
  });
}

void MeanOf(In x, In y, const double* share, Out mean, double* square) {
  EachVector(mean.lanes, [&](int l) HWY_ATTR {
    const V newest = hn::LoadU(D(), share + l);
    V sum = hn::Zero(D());
    for (int r = 0; r < mean.rows; ++r) {
      const V old = At(mean.p, r, l), now = At(x.p, r, l),
              less = y.rows > 0 ? hn::Sub(now, At(y.p, r, l)) : now,
              next = hn::MulAdd(newest, hn::Sub(less, old), old);
      sum = hn::MulAdd(next, next, sum);
      Put(next, mean.p, r, l);
    }
    hn::StoreU(sum, D(), square + l);
  });
}

void Combine(In x, In y, const double* w, Out z) {
  EachVector(z.lanes, [&](int l) HWY_ATTR {
    const V weight = hn::LoadU(D(), w + l);
    const auto takes = hn::Gt(weight, hn::Zero(D()));
    for (int r = 0; r < z.rows; ++r) {
      const V own = At(y.p, r, l), gap = hn::Sub(At(x.p, r, l), own);
      Put(hn::IfThenElse(takes, hn::MulAdd(weight, gap, own), own), z.p, r, l);
    }
  });
}

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Guard);
HWY_EXPORT(Combination);
HWY_EXPORT(MeanOf);
HWY_EXPORT(Combine);

void guard_rows(In g, Out h, Out hbar, const double* c, const double* s, const double* share,
                GuardSums& sums) {
  HWY_DYNAMIC_DISPATCH(Guard)(g, h, hbar, c, s, share, sums);
}
void combination_rows(const CombinationRows& rows, const double* scale, const double* moved,
                      CombinationSums& sums) {
  HWY_DYNAMIC_DISPATCH(Combination)(rows, scale, moved, sums);
}
void mean_rows(In x, In y, const double* share, Out mean, double* square) {
  HWY_DYNAMIC_DISPATCH(MeanOf)(x, y, share, mean, square);
}
void combine_rows(In x, In y, const double* w, Out z) { HWY_DYNAMIC_DISPATCH(Combine)(x, y, w, z); }

}  // namespace affpcl
#endif
