// What a run will need, told before it is allocated.
#pragma once

#include <cstdint>

#include "affpcl/study/spec.h"

namespace affpcl {

std::int64_t agents_hint(const Spec& spec);  // as far as the spec says; a file may say otherwise

// BadInput if the run's memory would exceed this machine's.
void refuse_too_large(const Spec& spec);

}  // namespace affpcl
