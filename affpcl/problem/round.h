// What a method sees of one round: the samples, the step sizes, memory, and space to compute in.
#pragma once

#include <cstdint>

#include "affpcl/math/blocks.h"
#include "affpcl/math/schedule.h"
#include "affpcl/problem/present.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

struct Round {
  const Problem& problem;
  const StepSizes& step;
  std::int64_t first;  // local steps taken before this round
  int steps;           // local steps of this round: the period K, fewer at the end of a run
  Scratch& scratch;
  Key key{};                         // of the run, for draws of a method's own
  const Present* present = nullptr;  // the agents that take part; nullptr: all
  std::int64_t count_present() const {
    return present != nullptr ? present->count : problem.shape().agents;
  }
};

// A block's samples of one round: up to `size` samples for each of `steps` local steps.
struct Batch {
  const double* p = nullptr;
  int state_rows = 0, d = 0;
  int steps = 1, size = 1;
  int period = 1, last = 1;  // the period's last step takes `last` samples
  int samples(int k) const { return k + 1 == period ? last : size; }  // of step k
  int all_samples() const {                                           // of the round
    int all = 0;
    for (int k = 0; k < steps; ++k) all += samples(k);
    return all;
  }
  In s(int k, int m) const { return {sample(k, m), state_rows, kLanes}; }
  In b(int k, int m) const {  // b^i(s)
    return {sample(k, m) + static_cast<std::ptrdiff_t>(state_rows) * kLanes, d, kLanes};
  }

 private:
  const double* sample(int k, int m) const {
    return p + static_cast<std::ptrdiff_t>(k * size + m) * (state_rows + d) * kLanes;
  }
};

// One block of agents in one round: what each of a method's functions works on.
struct Block {
  Round round;
  Batch batch;
  Agents agents;  // the memory of these agents, to be changed
  Centre centre;  // what all agents share, to be read
  const Problem& problem() const { return round.problem; }
  Scratch& scratch() const { return round.scratch; }
  Lanes lanes() const { return agents.lanes; }
  LaneSet present() const {  // of these agents
    return round.present != nullptr ? round.present->of(lanes()) : all_lanes(lanes().count);
  }
  // alpha^i of local step k, one row, and alpha^c.
  In step_sizes(int k) const {
    return round.step.agents(round.first + k, agents.lanes, round.scratch);
  }
  double central_step(int k) const { return round.step.central.at(round.first + k); }
};

// g^i(x) = G(s_i, x) - b^i(s_i), the mean over step k's batch.
void direction(const Block& block, int k, In x, Out g);

struct SampleRange {  // some of a batch: [first, last)
  int first, last;
};
void direction(const Block& block, int k, SampleRange samples, In x, Out g);

}  // namespace affpcl
