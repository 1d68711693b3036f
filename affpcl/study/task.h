// A task: one replicate of one setting. As an archive it is sent between ranks and kept in
// checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "affpcl/runtime/run.h"
#include "affpcl/study/replica.h"
#include "affpcl/study/spec.h"

namespace affpcl {

struct Replicate {              // the outcome of a task
  std::vector<Record> records;  // by method
  std::int64_t steps = 0;       // done; fewer than asked for where the run was interrupted
  std::int64_t number = 0;
  std::vector<double> distance;  // by agent: |x^i_* - x^c_*|
};

struct TaskState {
  std::int64_t task = 0;
  bool finished = false;
  RunState state = {};       // of a task under way
  Replicate replicate = {};  // of one that is finished
};

using Bytes = std::vector<std::byte>;
Bytes pack(const TaskState& task);
TaskState unpack(std::span<const std::byte> bytes);  // BadInput where they are no task

// Many packed tasks, one after another: each is added at the end, and all are taken apart again.
void append(const Bytes& task, Bytes& tasks);
std::vector<TaskState> unpack_all(std::span<const std::byte> tasks);

// BadInput unless a finished replicate that was read is one of this setting: its number, its steps
// and all its sizes.
void check_replicate(const Replicate& replicate, const Spec& spec, std::int64_t number,
                     const SettingShape& shape);

}  // namespace affpcl
