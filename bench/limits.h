// What this machine can do at most, by one fixed set of small kernels on one core: what rounds are
// held against. The fastest of many short runs counts.
#pragma once

namespace affpcl::bench {

struct Limits {
  double fma64 = 0, fma32 = 0;  // multiply-adds in registers, flops/s (two each)
  double exp64 = 0, exp32 = 0;  // exponentials of numbers in the first cache, 1/s
  double normals = 0;           // normals of a block, 1/s
  double bandwidth = 0;         // copying 64 MB, bytes read and written, 1/s
};
// Raises them to what is measured now; copying, which takes longest, is measured the first time.
void measure(Limits& limits);

}  // namespace affpcl::bench
