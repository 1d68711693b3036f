// Row arithmetic of blocks.h, compiled once per instruction set.
#include "affpcl/math/blocks.h"

#include "affpcl/math/instruction_sets-inl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/rows.cc"
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

inline int Width() { return static_cast<int>(hn::Lanes(D())); }

// Row r from lane l on, of what each lane has for itself and of what all share.
struct Own {
  const double* p;
  HWY_INLINE V operator()(int r, int l) const { return hn::LoadU(D(), p + r * kLanes + l); }
};
struct Shared {
  const double* p;
  HWY_INLINE V operator()(int r, int) const { return hn::Set(D(), p[r]); }
};

// f(x) with x as the one or the other.
template <class F>
HWY_INLINE void Reading(In x, F f) {
  if (x.width == 1) return f(Shared{x.p});
  f(Own{x.p});
}
template <class F>
HWY_INLINE void Reading(In x, In y, F f) {
  Reading(x,
          [=](auto own_x) HWY_ATTR { Reading(y, [=](auto own_y) HWY_ATTR { f(own_x, own_y); }); });
}

template <class F>
HWY_INLINE void EachVector(Out to, F f) {
  EachGroup(D(), to.lanes, [=](auto C, int first) HWY_ATTR {
    for (int r = 0; r < to.rows; ++r)
      for (int v = 0; v < C; ++v) {
        const int l = first + v * Width();
        hn::StoreU(f(r, l), D(), to.p + r * kLanes + l);
      }
  });
}

// The S sums over rows that f(r, l, sums) adds to, for tell(l, sums).
template <int S, class F, class G>
HWY_INLINE void EachSum(int rows, int lanes, F f, G tell) {
  EachGroup(D(), lanes, [=](auto C, int first) HWY_ATTR {
    V sums[C][S];
    for (int v = 0; v < C; ++v)
      for (int k = 0; k < S; ++k) sums[v][k] = hn::Zero(D());
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < C; ++v) f(r, first + v * Width(), sums[v]);
    for (int v = 0; v < C; ++v) tell(first + v * Width(), sums[v]);
  });
}

void Fill(Out to, double value) {
  const V all = hn::Set(D(), value);
  EachVector(to, [=](int, int) HWY_ATTR { return all; });
}

void Copy(In from, Out to) {
  Reading(from, [=](auto x) HWY_ATTR { EachVector(to, x); });
}

void Subtract(In a, In b, Out to) {
  Reading(a, b, [=](auto x, auto y) HWY_ATTR {
    EachVector(to, [=](int r, int l) HWY_ATTR { return hn::Sub(x(r, l), y(r, l)); });
  });
}

void AddScaled(Out y, double a, In x) {
  const V factor = hn::Set(D(), a);
  const Own before{y.p};
  Reading(x, [=](auto add) HWY_ATTR {
    EachVector(y,
               [=](int r, int l) HWY_ATTR { return hn::MulAdd(factor, add(r, l), before(r, l)); });
  });
}

template <class F>
HWY_INLINE void DescendAlong(Out x, In step, F direction) {
  const Own before{x.p};
  EachGroup(D(), x.lanes, [=](auto C, int first) HWY_ATTR {
    V steps[C];
    Reading(step, [&](auto s) HWY_ATTR {
      for (int v = 0; v < C; ++v) steps[v] = s(0, first + v * Width());
    });
    for (int r = 0; r < x.rows; ++r)
      for (int v = 0; v < C; ++v) {
        const int l = first + v * Width();
        hn::StoreU(hn::NegMulAdd(steps[v], direction(r, l), before(r, l)), D(),
                   x.p + r * kLanes + l);
      }
  });
}

void Descend(Out x, In step, In g) {
  Reading(g, [=](auto direction) HWY_ATTR { DescendAlong(x, step, direction); });
}

void DescendBoth(Out x, In step, In g, In h) {
  Reading(g, h, [=](auto a, auto b) HWY_ATTR {
    DescendAlong(x, step, [=](int r, int l) HWY_ATTR { return hn::Add(a(r, l), b(r, l)); });
  });
}

void SquaredDistance(In a, In b, Out one_row) {
  Reading(a, b, [=](auto x, auto y) HWY_ATTR {
    EachSum<1>(
        a.rows, one_row.lanes,
        [=](int r, int l, V(&sum)[1]) HWY_ATTR {
          const V gap = hn::Sub(x(r, l), y(r, l));
          sum[0] = hn::MulAdd(gap, gap, sum[0]);
        },
        [=](int l, const V(&sum)[1]) HWY_ATTR { hn::StoreU(sum[0], D(), one_row.p + l); });
  });
}

void Dot(In a, In b, int lanes, double* to) {
  Reading(a, b, [=](auto x, auto y) HWY_ATTR {
    EachSum<1>(
        a.rows, lanes,
        [=](int r, int l, V(&sum)[1]) HWY_ATTR { sum[0] = hn::MulAdd(x(r, l), y(r, l), sum[0]); },
        [=](int l, const V(&sum)[1]) HWY_ATTR { hn::StoreU(sum[0], D(), to + l); });
  });
}

void Difference(In a, In b, Out to, Out sum, double* along, double* square) {
  Reading(a, b, [=](auto x, auto y) HWY_ATTR {
    EachSum<2>(
        to.rows, to.lanes,
        [=](int r, int l, V(&sums)[2]) HWY_ATTR {
          const V gap = hn::Sub(x(r, l), y(r, l)), before = Own{sum.p}(r, l);
          sums[0] = hn::MulAdd(before, gap, sums[0]);
          sums[1] = hn::MulAdd(before, before, sums[1]);
          hn::StoreU(gap, D(), to.p + r * kLanes + l);
          hn::StoreU(hn::Add(before, gap), D(), sum.p + r * kLanes + l);
        },
        [=](int l, const V(&sums)[2]) HWY_ATTR {
          hn::StoreU(sums[0], D(), along + l);
          hn::StoreU(sums[1], D(), square + l);
        });
  });
}

void Scale(In a, const double* factor, Out to) {
  Reading(a, [=](auto x) HWY_ATTR {
    EachVector(to,
               [=](int r, int l) HWY_ATTR { return hn::Mul(x(r, l), hn::LoadU(D(), factor + l)); });
  });
}

void ScaleAdd(In a, const double* factor, In b, Out to) {
  Reading(a, b, [=](auto x, auto y) HWY_ATTR {
    EachVector(to, [=](int r, int l) HWY_ATTR {
      return hn::MulAdd(x(r, l), hn::LoadU(D(), factor + l), y(r, l));
    });
  });
}

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace affpcl {

HWY_EXPORT(Fill);
HWY_EXPORT(Copy);
HWY_EXPORT(Subtract);
HWY_EXPORT(AddScaled);
HWY_EXPORT(Descend);
HWY_EXPORT(DescendBoth);
HWY_EXPORT(SquaredDistance);
HWY_EXPORT(Dot);
HWY_EXPORT(Difference);
HWY_EXPORT(Scale);
HWY_EXPORT(ScaleAdd);

void fill(Out to, double value) { HWY_DYNAMIC_DISPATCH(Fill)(to, value); }
void copy(In from, Out to) { HWY_DYNAMIC_DISPATCH(Copy)(from, to); }
void subtract(In a, In b, Out to) { HWY_DYNAMIC_DISPATCH(Subtract)(a, b, to); }
void add_scaled(Out y, double a, In x) { HWY_DYNAMIC_DISPATCH(AddScaled)(y, a, x); }
void descend(Out x, In step, In g) { HWY_DYNAMIC_DISPATCH(Descend)(x, step, g); }
void descend(Out x, In step, In g, In h) { HWY_DYNAMIC_DISPATCH(DescendBoth)(x, step, g, h); }
void squared_distance(In a, In b, Out one_row) {
  HWY_DYNAMIC_DISPATCH(SquaredDistance)(a, b, one_row);
}
void dot(In a, In b, int lanes, double* sum) { HWY_DYNAMIC_DISPATCH(Dot)(a, b, lanes, sum); }
void difference(In a, In b, Out to, Out sum, double* along, double* square) {
  HWY_DYNAMIC_DISPATCH(Difference)(a, b, to, sum, along, square);
}
void scale(In a, const double* factor, Out to) { HWY_DYNAMIC_DISPATCH(Scale)(a, factor, to); }
void scale(In a, const double* factor, In b, Out to) {
  HWY_DYNAMIC_DISPATCH(ScaleAdd)(a, factor, b, to);
}
void outer(In a, In b, In x, Out to) {
  alignas(64) double sum[kLanes];
  dot(b, x, to.lanes, sum);
  scale(a, sum, to);
}

}  // namespace affpcl
#endif
