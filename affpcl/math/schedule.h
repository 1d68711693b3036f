// Step sizes (lem:step, and the step-size rules of the corollaries).
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/math/blocks.h"

namespace affpcl {

// alpha_t for t = 0, 1, …, horizon - 1.
struct Schedule {
  enum class Kind { kConstant, kLogConstant, kDiminishing };
  Kind kind = Kind::kConstant;
  double value = 0.01;       // constant: the step itself
  std::int64_t horizon = 1;  // log-constant: ln T / T
  double t0 = 1;             // diminishing: 4 / (t + t0 + 1)
  double at(std::int64_t t) const;
};

// alpha^i, alpha^c, alpha^b, alpha^rho: one schedule per module times a fixed factor, which is 1 /
// lambda of the module where the schedule is relative (alpha^i lambda^i = alpha^b lambda^b =
// alpha^c lambda^c = alpha_t), else 1.
struct StepSizes {
  struct Module {
    Schedule schedule;
    double factor = 1;
    double at(std::int64_t t) const { return schedule.at(t) * factor; }
  };
  Module agent, central, objective, ratio;
  std::vector<double>
      agent_factors;  // one per agent where steps are agent specific; replaces agent.factor

  bool common() const { return agent_factors.empty(); }  // all agents take the same step
  // One row: the step of every agent of the block.
  In agents(std::int64_t t, Lanes lanes, Scratch& scratch) const;
};

}  // namespace affpcl
