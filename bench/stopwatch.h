// Time of one thread's work. The processor's clock, not the wall's, so that a busy machine disturbs
// less.
#pragma once

#include <algorithm>
#include <ctime>

#include "affpcl/base/function_ref.h"

namespace affpcl::bench {

inline double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The least seconds of work() in `times` tries.
inline double fastest(FunctionRef<void()> work, int times = 30) {
  double least = 1e9;
  for (int k = 0; k < times; ++k) {
    const double start = processor_seconds();
    work();
    least = std::min(least, processor_seconds() - start);
  }
  return least;
}

}  // namespace affpcl::bench
