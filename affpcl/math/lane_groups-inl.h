// The lanes of a block, several vectors at a time, inlined into kernels: few agents have few
// vectors, and a loop over them costs more than the work in it.

// Included once per instruction set: the guard toggles.
#if defined(AFFPCL_MATH_LANE_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AFFPCL_MATH_LANE_GROUPS_INL_H_
#undef AFFPCL_MATH_LANE_GROUPS_INL_H_
#else
#define AFFPCL_MATH_LANE_GROUPS_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace affpcl {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f(C, l) for C vectors, a number that is known when it is compiled, from lane l on.
template <class D, class F>
HWY_INLINE void EachGroup(D d, int lanes, F f) {
  const int N = static_cast<int>(hn::Lanes(d));
  int l = 0;
  const auto groups_of = [&](auto C) HWY_ATTR {
    for (; l + C * N <= lanes; l += C * N) f(C, l);
  };
  groups_of(std::integral_constant<int, 4>());
  groups_of(std::integral_constant<int, 3>());
  groups_of(std::integral_constant<int, 1>());
}

}  // namespace HWY_NAMESPACE
}  // namespace affpcl
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
