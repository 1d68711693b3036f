// What an algorithm sees of one round: the samples, the step sizes, and space to compute in.
#pragma once

#include <cstdint>

#include "affpcl/math/blocks.h"
#include "affpcl/math/schedule.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

struct Round {
  const Problem& problem;
  const StepSizes& step;
  std::int64_t first;  // local steps taken before this round
  int steps;           // local steps of this round: the period K, fewer at the end of a run
  Scratch& scratch;
  Key key{};  // of the run, for draws of a method's own
};

// A block's samples of one round: up to `size` samples for each of `steps` local steps.
struct Batch {
  const double* p = nullptr;
  int state_rows = 0, d = 0;
  int steps = 1, size = 1;
  int period = 1, last = 1;  // the period's last step takes `last` samples
  int samples(int k) const { return k + 1 == period ? last : size; }  // of step k
  In s(int k, int m) const { return {sample(k, m), state_rows, kLanes}; }
  In b(int k, int m) const {
    return {sample(k, m) + static_cast<std::ptrdiff_t>(state_rows) * kLanes, d, kLanes};
  }  // b^i(s)

 private:
  const double* sample(int k, int m) const {
    return p + static_cast<std::ptrdiff_t>(k * size + m) * (state_rows + d) * kLanes;
  }
};

// g_i(x) = A(s_i) x - b^i(s_i), the mean over step k's batch.
void residual(const Round& round, Lanes lanes, const Batch& batch, int k, In x, Out g);

}  // namespace affpcl
