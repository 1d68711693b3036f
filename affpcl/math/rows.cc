// Row arithmetic of blocks.h, compiled once per instruction set.
#include "affpcl/math/blocks.h"

#include "affpcl/math/instruction_sets-inl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "affpcl/math/rows.cc"
#include <hwy/foreach_target.h>  // NOLINT
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kLaneStep>;
using V = hn::Vec<D>;

inline int Width() { return static_cast<int>(hn::Lanes(D())); }

// Row r of x from lane l on; one number for all where they share it.
HWY_INLINE V Get(In x, int r, int l) {
  const D d;
  return x.width == 1 ? hn::Set(d, x.p[r]) : hn::LoadU(d, x.row(r) + l);
}

template <class F>
HWY_INLINE void EachVector(Out to, F f) {
  const D d;
  const int N = Width();
  for (int r = 0; r < to.rows; ++r)
    for (int l = 0; l < to.lanes; l += N) hn::StoreU(f(r, l), d, to.row(r) + l);
}

void Fill(Out to, double value) {
  const V all = hn::Set(D(), value);
  EachVector(to, [=](int, int) HWY_ATTR { return all; });
}

void Copy(In from, Out to) {
  EachVector(to, [=](int r, int l) HWY_ATTR { return Get(from, r, l); });
}

void Subtract(In a, In b, Out to) {
  EachVector(to, [=](int r, int l) HWY_ATTR { return hn::Sub(Get(a, r, l), Get(b, r, l)); });
}

void AddScaled(Out y, double a, In x) {
  const V factor = hn::Set(D(), a);
  EachVector(y,
             [=](int r, int l) HWY_ATTR { return hn::MulAdd(factor, Get(x, r, l), Get(y, r, l)); });
}

void Descend(Out x, In step, In g) {
  EachVector(x, [=](int r, int l) HWY_ATTR {
    return hn::NegMulAdd(Get(step, 0, l), Get(g, r, l), Get(x, r, l));
  });
}

void DescendBoth(Out x, In step, In g, In h) {
  EachVector(x, [=](int r, int l) HWY_ATTR {
    return hn::NegMulAdd(Get(step, 0, l), hn::Add(Get(g, r, l), Get(h, r, l)), Get(x, r, l));
  });
}

void SquaredDistance(In a, In b, Out one_row) {
  const D d;
  for (int l = 0; l < one_row.lanes; l += Width()) {
    V sum = hn::Zero(d);
    for (int r = 0; r < a.rows; ++r) {
      const V gap = hn::Sub(Get(a, r, l), Get(b, r, l));
      sum = hn::MulAdd(gap, gap, sum);
    }
    hn::StoreU(sum, d, one_row.p + l);
  }
}

void Dot(In a, In b, int lanes, double* to) {
  const D d;
  for (int l = 0; l < lanes; l += Width()) {
    V sum = hn::Zero(d);
    for (int r = 0; r < a.rows; ++r) sum = hn::MulAdd(Get(a, r, l), Get(b, r, l), sum);
    hn::StoreU(sum, d, to + l);
  }
}

void Scale(In a, const double* factor, Out to) {
  EachVector(
      to, [=](int r, int l) HWY_ATTR { return hn::Mul(Get(a, r, l), hn::LoadU(D(), factor + l)); });
}

void ScaleAdd(In a, const double* factor, In b, Out to) {
  EachVector(to, [=](int r, int l) HWY_ATTR {
    return hn::MulAdd(Get(a, r, l), hn::LoadU(D(), factor + l), Get(b, r, l));
  });
}

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
