// How sums over agents are added.
#pragma once

#include <array>
#include <string_view>

#include "affpcl/base/params.h"

namespace affpcl {

// In doubles, in a fixed order; or exactly, in fixed point, where the order does not matter
// (math/fixed.h).
enum class Sums { kFloat, kFixed };
template <>
struct EnumNames<Sums> {
  static constexpr std::array<std::string_view, 2> all = {"float", "fixed"};
};

inline constexpr std::string_view kSumsDoc =
    "sums over agents: float, in a fixed order; fixed: in fixed point, to the same bits for any "
    "partition of the agents, as in a federation";

}  // namespace affpcl
