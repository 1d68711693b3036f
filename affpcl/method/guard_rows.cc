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

HWY_INLINE V Clamp01(V x) { return hn::Min(hn::Max(x, hn::Zero(D())), hn::Set(D(), 1)); }

void Guard(In g, Out h, Out hbar, double pool, const double* share, Out means) {
  const V zero = hn::Zero(D()), one = hn::Set(D(), 1), B2 = hn::Set(D(), pool);
  EachVector(h.lanes, [&](int l) HWY_ATTR {
    const V newest = hn::LoadU(D(), share + l), t = At(means.p, GuardRow::kSteps, l),
            q = At(means.p, GuardRow::kChance, l), gh = At(means.p, GuardRow::kGH, l),
            hh = At(means.p, GuardRow::kHH, l);
    const V variance = hn::IfThenElseZero(
        hn::Lt(q, one),
        hn::Div(hn::Mul(hn::Max(zero, hn::Sub(hh, At(means.p, GuardRow::kSquare, l))), q),
                hn::Sub(one, q)));
    const V off = hn::IfThenElseZero(hn::Gt(B2, zero),
                                     hn::Div(B2, hn::MulAdd(hn::Set(D(), 0.2), variance, B2)));
    const V weight =  // as if one step more had said c = 1
        hn::IfThenElse(hn::Gt(hh, zero),
                       Clamp01(hn::Div(hn::NegMulAdd(t, gh, hh), hn::Mul(hn::Add(t, one), hh))),
                       one);
    V gh_now = zero, hh_now = zero, square = zero;
    for (int r = 0; r < h.rows; ++r) {
      const V now = At(h.p, r, l), mean = At(hbar.p, r, l),
              next = hn::MulAdd(newest, hn::Sub(now, mean), mean);
      gh_now = hn::MulAdd(At(g.p, r, l), now, gh_now);
      hh_now = hn::MulAdd(now, now, hh_now);
      square = hn::MulAdd(next, next, square);
      Put(hn::Mul(weight, hn::NegMulAdd(off, mean, now)), h.p, r, l);
      Put(next, hbar.p, r, l);
    }
    const V older = hn::Sub(one, newest);
    Put(hn::MulAdd(newest, hn::Sub(gh_now, gh), gh), means.p, GuardRow::kGH, l);
    Put(hn::MulAdd(newest, hn::Sub(hh_now, hh), hh), means.p, GuardRow::kHH, l);
    Put(square, means.p, GuardRow::kSquare, l);
    Put(weight, means.p, GuardRow::kWeight, l);
    Put(off, means.p, GuardRow::kDebias, l);
    Put(hn::Add(t, one), means.p, GuardRow::kSteps, l);
    Put(hn::MulAdd(hn::Mul(older, older), q, hn::Mul(newest, newest)), means.p, GuardRow::kChance,
        l);
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

// The part of `total` that `expected` does not explain, in [0, 1].
HWY_INLINE V Excess(V expected, V total) {
  return hn::IfThenElseZero(hn::Gt(total, expected),
                            hn::Sub(hn::Set(D(), 1), hn::Div(expected, total)));
}
HWY_INLINE V Over(V a, V b) {  // a / b, and 1 where b is 0
  return hn::IfThenElse(hn::Gt(b, hn::Zero(D())), hn::Div(a, b), hn::Set(D(), 1));
}
// Stein's constant, as a share of the degrees of freedom: up to 2 - 4 / freedom no bias is harmful.
HWY_INLINE V Stein(V freedom) {
  return hn::Min(
      hn::Max(hn::Sub(hn::Set(D(), 2), hn::Div(hn::Set(D(), 4), freedom)), hn::Set(D(), 1)),
      hn::Set(D(), 1.5));
}

void Weigh(const CombinationSums& sums, In alpha, const CombinationShares& shares,
           const CombinationAgain& again, int d, Out numbers, Out average, const double* average2) {
  using Row = CombinationRow;
  const V zero = hn::Zero(D()), one = hn::Set(D(), 1), unknowns = hn::Set(D(), d);
  EachVector(numbers.lanes, [&](int l) HWY_ATTR {
    double* const m = numbers.p;
    const V t = hn::Add(At(m, Row::kCount, l), one), before = At(m, Row::kSquare, l),
            now = hn::LoadU(D(), sums.square + l);
    Put(t, m, Row::kCount, l);
    Put(now, m, Row::kSquare, l);
    // The first round has no differences: what it would change stays as it is.
    const auto later = hn::Gt(t, one), second = hn::Eq(t, hn::Set(D(), 2));
    const auto keep = [&](V x, int row) HWY_ATTR {
      x = hn::IfThenElse(later, x, At(m, row, l));
      Put(x, m, row, l);
      return x;
    };
    const auto take = [&](int row, V share, V x) HWY_ATTR {
      const V mean = At(m, row, l);
      return keep(hn::MulAdd(share, hn::Sub(x, mean), mean), row);
    };
    const V older = hn::LoadU(D(), shares.older + l), newest = hn::LoadU(D(), shares.newest + l),
            chance = hn::LoadU(D(), shares.older_chance + l);
    const V eh_now = hn::LoadU(D(), sums.eh + l), hh_now = hn::LoadU(D(), sums.hh + l),
            uphill_now = hn::LoadU(D(), sums.uphill + l);
    const V ee = take(Row::kEE, older, hn::LoadU(D(), sums.ee + l)),
            eh = take(Row::kEH, older, eh_now), hh = take(Row::kHH, older, hh_now),
            eh2 = take(Row::kEH2, older, hn::Mul(eh_now, eh_now)),
            ehhh = take(Row::kEHHH, older, hn::Mul(eh_now, hh_now)),
            hh2 = take(Row::kHH2, older, hn::Mul(hh_now, hh_now)),
            uphill = take(Row::kUphill, older, uphill_now),
            uphill2 = take(Row::kUphill2, older, hn::Mul(uphill_now, uphill_now));

    const V step = At(alpha.p, 0, l), square_step = hn::Mul(step, step),
            rho = hn::Min(one, Over(hn::LoadU(D(), sums.carried + l), before)),
            brought = hn::Mul(square_step, hh_now), own_brought = hn::Mul(square_step, ee),
            own_before = hn::IfThenElse(second, own_brought, At(m, Row::kOwnNoise, l)),
            energy_before = hn::IfThenElse(second, brought, At(m, Row::kNoise, l)),
            own = keep(hn::MulAdd(rho, own_before, own_brought), Row::kOwnNoise),
            energy = keep(hn::MulAdd(rho, energy_before, brought), Row::kNoise),
            energy_mean = take(Row::kNoiseMean, newest, energy),
            delta2_mean = take(Row::kSquareMean, newest, now),
            lost = take(Row::kLost, newest, hn::Sub(one, rho));

    V bias;
    if (average.rows > 0) {
      // The energy that noise brings to the mean m of delta, by the recursion of the mean:
      //   |m'|^2 = (1 - s)^2 |m|^2 + 2 s (1 - s) <m, delta'> + s^2 |delta'|^2,  s: newest share,
      // where <m, delta'> is the <m, delta> of the round before, but for what the dynamics took
      // off.
      const V kept =
                  hn::Min(hn::Max(Over(hn::LoadU(D(), sums.cross + l), before), hn::Neg(one)), one),
              old = At(average.p, AverageRow::kNoise, l), rest = hn::Sub(one, newest),
              cross = hn::Mul(kept, hn::MulAdd(older, energy_before,
                                               hn::Mul(hn::Sub(one, older),
                                                       At(average.p, AverageRow::kCross, l)))),
              noise = hn::Add(
                  hn::MulAdd(hn::Mul(rest, rest), hn::IfThenElse(second, energy_before, old),
                             hn::Mul(hn::Mul(hn::Set(D(), 2), hn::Mul(newest, rest)), cross)),
                  hn::Mul(hn::Mul(newest, newest), energy));
      Put(hn::IfThenElse(later, cross, At(average.p, AverageRow::kCross, l)), average.p,
          AverageRow::kCross, l);
      Put(hn::IfThenElse(later, noise, old), average.p, AverageRow::kNoise, l);
      bias = Excess(hn::Mul(Stein(unknowns), noise), hn::LoadU(D(), average2 + l));
    } else {
      const V relaxed =  // relaxation times that the means span
          hn::Div(lost,
                  hn::Add(hn::LoadU(D(), shares.chance + l), hn::LoadU(D(), shares.chance + l)));
      bias =
          Excess(hn::Mul(Stein(hn::MulAdd(unknowns, relaxed, unknowns)), energy_mean), delta2_mean);
    }
    const V rows = hn::LoadU(D(), again.rows + l),
            counted = hn::IfThenElse(  // the share of bias that is not chance
                hn::Gt(rows, zero), Excess(hn::Div(hh, rows), hn::LoadU(D(), again.square + l)),
                one);
    const V chance_uphill = hn::Sqrt(hn::Mul(chance, uphill2)),
            z = hn::IfThenElseZero(hn::Gt(chance_uphill, zero), hn::Div(uphill, chance_uphill)),
            downhill = Clamp01(hn::NegMulAdd(counted, z, hn::Set(D(), 1.5)));
    const V c = hn::Neg(hn::Div(eh, hh)),
            // Of the regression of -<e, h> on |h|^2 without a constant: the mean square of what
        // is left.
        residual = hn::MulAdd(c, hn::MulAdd(c, hh2, hn::Add(ehhh, ehhh)), eh2),
            known = Excess(hn::Mul(chance, hn::Max(zero, residual)), hn::Mul(eh, eh)),
            w = hn::Mul(hn::Mul(c, known), hn::Mul(hn::NegMulAdd(counted, bias, one), downhill)),
            reach = hn::Sqrt(hn::NegMulAdd(
                counted, Excess(hn::Mul(hn::Set(D(), 4), own), hn::Mul(hn::Mul(w, w), now)), one));
    const auto valid = hn::And(hn::And(later, hn::And(hn::Gt(hh, zero), hn::Lt(eh, zero))),
                               hn::And(hn::IsFinite(now), hn::IsFinite(residual)));
    Put(hn::IfThenElseZero(valid, Clamp01(hn::Mul(w, reach))), m, Row::kShare, l);
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
HWY_EXPORT(Weigh);
HWY_EXPORT(MeanOf);
HWY_EXPORT(Combine);

void guard_rows(In g, Out h, Out hbar, double pool, const double* share, Out means) {
  HWY_DYNAMIC_DISPATCH(Guard)(g, h, hbar, pool, share, means);
}
void weigh_rows(const CombinationSums& sums, In alpha, const CombinationShares& shares,
                const CombinationAgain& again, int d, Out numbers, Out average,
                const double* average2) {
  HWY_DYNAMIC_DISPATCH(Weigh)(sums, alpha, shares, again, d, numbers, average, average2);
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
