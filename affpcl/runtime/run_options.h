// Options of a run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "affpcl/base/params.h"

namespace affpcl {

struct RunOptions {
  // The iterate that is scored. Weighted: lem:step. Polyak: the average over the second half.
  enum class Iterate { kLast, kWeighted, kPolyak };
  std::uint64_t seed = 1;
  std::uint32_t replicate = 0;
  std::int64_t steps = 60;  // samples (or batches) per agent
  std::int64_t tail = 10;   // steps whose errors make the summary
  Iterate iterate = Iterate::kLast;
  std::vector<std::int64_t> curve_agents;  // agents whose own curve is kept
  // The share of agents that take part in a round: max(1, round(participation n)), drawn without
  // replacement, the same for all methods with the same period. Or a schedule: the agents of each
  // round, in ascending order, begun anew after its last round.
  double participation = 1;
  std::vector<std::vector<std::int64_t>> schedule = {};
  std::int64_t curve_points = 1000;  // a longer run keeps an evenly spaced part of its curve
  // A run has diverged once its error exceeds this many times the scale of the problem.
  double diverged_above = 1e6;

  // Steps between two points of a curve.
  std::int64_t curve_every() const { return (steps + curve_points - 1) / curve_points; }
};

template <>
struct EnumNames<RunOptions::Iterate> {
  static constexpr std::string_view all[] = {"last", "weighted", "polyak"};
};

}  // namespace affpcl
