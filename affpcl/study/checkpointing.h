// When a study writes checkpoints, and what they hold. Rank 0 writes; all ranks pause for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "affpcl/study/checkpoint.h"
#include "affpcl/study/study.h"

namespace affpcl {

class Checkpointing {
 public:
  Checkpointing(const Study& study, const StudyOptions& options, Processes& processes);

  bool on() const { return !options_.checkpoint.empty(); }
  std::int64_t steps() const { return steps_; }  // of a worker until the next checkpoint

  // The tasks to go on from, which check() does not refuse; all are kept. On rank 0, else empty.
  std::vector<TaskState> resume(const Checkpoints::Check& check);

  // Rank 0 keeps a task for the next checkpoint, in place of an earlier state of it.
  void keep(const TaskState& task);
  void write();
  void set_pace();  // after a checkpoint, on all ranks: how many steps until the next

 private:
  const StudyOptions& options_;
  Processes& processes_;
  std::unique_ptr<Checkpoints> files_;  // on rank 0
  std::map<std::size_t, Bytes> kept_;   // by task
  std::int64_t steps_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace affpcl
