// How long a round of AffPCL on the Gaussian system takes.
#pragma once

#include <cstdint>
#include <string>

#include "bench/limits.h"

namespace affpcl::bench {

struct RoundCase {
  std::int64_t agents = 20;
  int dim = 5;
  std::string ratio = "exact";
  std::string precision = "f64";
  int threads = 1;
};

// Seconds of a round, of as many as `seconds` allow, after some that do not count: of the processor
// on one thread, of the wall on several. What it takes as a rule, and in the best moments, which is
// what limits are measured in.
struct RoundSeconds {
  double median = 0, least = 0;
};
RoundSeconds round_seconds(const RoundCase& c, double seconds);

// The same by the cost model of docs/performance.md for one core, exact ratios:
// n^2 (4 d / P + 1 / E) + n (2 d^2 / P + d / R).
double model_seconds(const RoundCase& c, const Limits& limits);

}  // namespace affpcl::bench
