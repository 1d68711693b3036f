// Which instruction sets Highway compiles for. Include before <hwy/foreach_target.h>.
#pragma once

// ARM's SVE has vectors of a size that the compiler does not know: they cannot be in arrays, as
// they are here. Such processors use NEON.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
