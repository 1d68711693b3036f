#include "affpcl/study/checkpointing.h"

#include <algorithm>

#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

constexpr double kSeconds = 60;           // between two checkpoints, by default
constexpr std::int64_t kFirstSteps = 64;  // until the first

}  // namespace

Checkpointing::Checkpointing(const Study& study, const StudyOptions& options, Processes& processes)
    : options_(options),
      processes_(processes),
      steps_(!on()               ? INT64_MAX
             : options.every > 0 ? options.every
                                 : kFirstSteps) {
  if (on() && processes.first())
    files_ = std::make_unique<Checkpoints>(options.checkpoint, study, options.resume);
}

std::vector<TaskState> Checkpointing::resume(const Checkpoints::Check& check) {
  std::vector<TaskState> tasks;
  if (options_.resume && files_) tasks = files_->read(options_.note, check);
  for (const TaskState& t : tasks) keep(t);
  return tasks;
}

void Checkpointing::keep(const TaskState& task) {
  if (files_) kept_[static_cast<std::size_t>(task.task)] = pack(task);
}

void Checkpointing::write() {
  if (files_) files_->write(kept_);
}

void Checkpointing::set_pace() {
  if (!on()) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  if (options_.every > 0) return;
  const double factor = std::clamp(kSeconds / std::max(seconds, 1e-3), 0.1, 8.0),
               steps = std::clamp(static_cast<double>(steps_) * factor, 1.0, 1e15);
  steps_ = broadcast(processes_, static_cast<std::int64_t>(steps));
}

}  // namespace affpcl
