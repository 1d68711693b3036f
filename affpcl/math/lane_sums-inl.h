// Sums over the lanes of several vectors at once, inlined into kernels: lanes are added where they
// meet, which takes a third of the operations of one vector after the other.

// Included once per instruction set: the guard toggles.
#if defined(AFFPCL_MATH_LANE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AFFPCL_MATH_LANE_SUMS_INL_H_
#undef AFFPCL_MATH_LANE_SUMS_INL_H_
#else
#define AFFPCL_MATH_LANE_SUMS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether a part of a vector can be read and written anywhere; elsewhere the whole of it is, and
// must be aligned.
constexpr bool kMasks = HWY_TARGET <= HWY_AVX2;

// sums[r] = the sum of v[r]'s lanes.
template <int R, class D>
HWY_INLINE void LaneSumsOf(D d, const hn::Vec<D> (&v)[R], hn::TFromD<D>* sums) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (R == 4 && sizeof(hn::TFromD<D>) == 8 && hn::MaxLanes(D()) == 8) {
    using V = hn::Vec<D>;
    const auto pairs = [=](V a, V b) HWY_ATTR {  // a0+a1, b0+b1, a2+a3, b2+b3, ...
      return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    };
    const V low = pairs(v[0], v[1]), high = pairs(v[2], v[3]);
    const V both = hn::Add(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
    const V all = hn::Add(both, hn::SwapAdjacentBlocks(both));  // s0 s1 s0 s1 s2 s3 s2 s3
    const hn::Half<D> h;
    hn::StoreU(hn::ConcatLowerLower(h, hn::UpperHalf(h, all), hn::LowerHalf(h, all)), h, sums);
    return;
  }
#endif
  for (int r = 0; r < R; ++r) sums[r] = hn::GetLane(hn::SumOfLanes(d, v[r]));
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
