// Some of a block's agents: a bit for each lane.
#pragma once

#include <bit>
#include <cstdint>

#include "affpcl/math/blocks.h"

namespace affpcl {

using LaneSet = std::uint64_t;
static_assert(kLanes == 64);

inline LaneSet all_lanes(int count) {
  return count == kLanes ? ~LaneSet{0} : (LaneSet{1} << count) - 1;
}
inline bool has_lane(LaneSet set, int lane) { return (set >> lane & 1) != 0; }
inline int count_lanes(LaneSet set) { return std::popcount(set); }
template <class F>
void each_lane(LaneSet set, F f) {  // f(lane), ascending
  for (; set != 0; set &= set - 1) f(std::countr_zero(set));
}

}  // namespace affpcl
