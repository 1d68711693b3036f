// A replicate of a setting, as numbers: how processes tell each other of it, and what a checkpoint
// holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/runtime/run.h"

namespace affpcl {

struct Replicate {              // what came of it
  std::vector<Record> records;  // by method
  std::int64_t steps = 0;       // done; fewer than asked for where the run was interrupted
  std::int64_t number = 0;
  std::vector<double> distance;  // by agent: |x^i_* - x^c_*|
};

struct TaskState {
  std::size_t task = 0;
  bool finished = false;
  RunState state;  // under way: the run's; finished: the Replicate
};

TaskState pack(std::size_t task, const Replicate& replicate);
Replicate unpack(const TaskState& finished);

// One list of numbers for many tasks. take() removes the first one from the list; it throws
// std::runtime_error where there is none.
void append(const TaskState& task, std::vector<double>& numbers);
TaskState take(std::span<const double>& numbers);

}  // namespace affpcl
