// Runs tasks: a task under way, and the workers that take one after another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/study/replica.h"
#include "affpcl/study/task.h"

namespace affpcl {

// A task under way.
class TaskRun {
 public:
  // BadInput as make_replica.
  TaskRun(std::size_t task, const Spec& spec, std::uint32_t number, Team& team);

  std::size_t task() const { return task_; }
  const Problem& problem() const { return *replica_.problem; }
  Run& run() { return *replica_.run; }

  // Advances by at most `left` steps and takes them off; true once the task is done. tell(steps) is
  // called now and then with the steps since the last call.
  bool advance(std::int64_t& left, const std::atomic<bool>* stop,
               FunctionRef<void(std::int64_t)> tell);
  TaskState save();    // the state to go on from; whole on rank 0
  TaskState finish();  // the outcome so far; whole on rank 0
  void release() {     // its memory, once nothing is asked of the problem and the run any more
    replica_.run.reset();
    replica_.problem.reset();
  }

 private:
  std::size_t task_;
  std::uint32_t number_;
  std::int64_t steps_;
  Replica replica_;
  std::vector<double> distance_;  // of all agents, on rank 0
};

// Workers that take the tasks of a rank in order, one team each. They work in waves, between which
// their tasks can be saved.
class Workers {
 public:
  Workers(std::vector<std::unique_ptr<Team>> teams, std::vector<std::size_t> tasks,
          const std::atomic<bool>* stop);

  struct Calls {
    FunctionRef<std::unique_ptr<TaskRun>(std::size_t, Team&)> begin;
    FunctionRef<void(const TaskRun&, std::int64_t)> progress;  // so many steps further
    FunctionRef<void(TaskRun&)> finished;
  };
  // Every worker runs `steps` steps, or until no task is left or stop turns true. Calls come from
  // any thread. The first exception is rethrown.
  void wave(std::int64_t steps, const Calls& calls);

  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  bool idle() const;  // no task is left, none is under way
  void under_way(FunctionRef<void(TaskRun&)> f);

 private:
  struct Worker {
    std::unique_ptr<Team> team;
    std::unique_ptr<TaskRun> running;
  };
  void work(Worker& worker, std::int64_t left, const Calls& calls);
  bool take_task(Team& team, std::size_t& task);

  std::vector<Worker> workers_;
  std::vector<std::size_t> tasks_;
  const std::atomic<bool>* stop_;
  std::mutex mutex_;  // of all below
  std::size_t next_ = 0;
  std::exception_ptr error_;
};

}  // namespace affpcl
