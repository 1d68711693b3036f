#include "affpcl/study/worker.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

constexpr std::int64_t kReports = 50;  // of progress, in a task

// |x^i_* - x^c_*| of the agents of some blocks; empty where the truth is not known.
std::vector<double> distances(const Problem& problem, std::int64_t first_block,
                              std::int64_t last_block) {
  std::vector<double> out;
  const Truth* truth = problem.truth();
  if (truth == nullptr || truth->xc.empty()) return out;
  const Shape shape = problem.shape();
  const std::int64_t end = std::min(last_block * kLanes, shape.agents);
  for (std::int64_t i = first_block * kLanes; i < end; ++i) {
    const In x = truth->x.block(i / kLanes)[{0, shape.d}];
    double square = 0;
    for (int r = 0; r < shape.d; ++r) {
      const double off =
          x.at(r, static_cast<int>(i % kLanes)) - truth->xc[static_cast<std::size_t>(r)];
      square += off * off;
    }
    out.push_back(std::sqrt(square));
  }
  return out;
}

}  // namespace

TaskRun::TaskRun(std::size_t task, const Spec& spec, std::uint32_t number, Team& team)
    : task_(task),
      number_(number),
      steps_(spec.run.steps),
      replica_(make_replica(spec, number, team)) {
  const auto& [problem, run] = replica_;
  const std::int64_t first = run->first_block(), last = run->last_block();
  gather(team.processes(), distances(*problem, first, last), [&](std::span<const double> some) {
    distance_.insert(distance_.end(), some.begin(), some.end());
  });
  if (team.processes().count() > 1) problem->keep(first, last);
}

bool TaskRun::advance(std::int64_t& left, const std::atomic<bool>* stop,
                      FunctionRef<void(std::int64_t)> tell) {
  Run& r = run();
  const std::int64_t every = std::max<std::int64_t>(1, steps_ / kReports), before = r.step(),
                     until = before + std::min(left, steps_ - before);
  std::int64_t told = before;
  const auto report = [&] { tell(r.step() - std::exchange(told, r.step())); };
  r.advance(until, stop, [&] {
    if (r.step() - told >= every) report();
  });
  if (r.step() > told) report();
  left -= r.step() - before;
  return r.done();
}

TaskState TaskRun::save() {
  return {.task = static_cast<std::int64_t>(task_), .state = run().save()};
}

TaskState TaskRun::finish() {
  return {.task = static_cast<std::int64_t>(task_),
          .finished = true,
          .replicate = {run().finish(), run().step(), number_, distance_}};
}

Workers::Workers(std::vector<std::unique_ptr<Team>> teams, std::vector<std::size_t> tasks,
                 const std::atomic<bool>* stop)
    : tasks_(std::move(tasks)), stop_(stop) {
  for (std::unique_ptr<Team>& team : teams) workers_.push_back({std::move(team), nullptr});
}

void Workers::wave(std::int64_t steps, const Calls& calls) {
  if (workers_.size() == 1) {
    work(workers_.front(), steps, calls);
  } else {
    std::vector<std::thread> pool;
    for (Worker& w : workers_) pool.emplace_back([&] { work(w, steps, calls); });
    for (std::thread& t : pool) t.join();
  }
  if (error_) std::rethrow_exception(error_);
}

void Workers::work(Worker& worker, std::int64_t left, const Calls& calls) {
  try {
    while (left > 0) {
      if (!worker.running) {
        std::size_t task = 0;
        if (!take_task(*worker.team, task)) return;
        worker.running = calls.begin(task, *worker.team);
      }
      TaskRun& running = *worker.running;
      const auto tell = [&](std::int64_t steps) { calls.progress(running, steps); };
      if (!running.advance(left, stop_, tell)) return;
      calls.finished(running);
      worker.running.reset();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

bool Workers::take_task(Team& team, std::size_t& task) {
  if (team.processes().any(stopped())) return false;
  const std::lock_guard lock(mutex_);
  if (next_ == tasks_.size() || error_) return false;
  task = tasks_[next_++];
  return true;
}

bool Workers::idle() const {
  return next_ == tasks_.size() &&
         std::none_of(workers_.begin(), workers_.end(),
                      [](const Worker& w) { return w.running != nullptr; });
}

void Workers::under_way(FunctionRef<void(TaskRun&)> f) {
  for (Worker& w : workers_)
    if (w.running) f(*w.running);
}

}  // namespace affpcl
