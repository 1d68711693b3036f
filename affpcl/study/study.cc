#include "affpcl/study/study.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/study/checkpointing.h"
#include "affpcl/study/gather.h"
#include "affpcl/study/limits.h"
#include "affpcl/study/plan.h"
#include "affpcl/study/task.h"
#include "affpcl/study/trace.h"
#include "affpcl/study/worker.h"

namespace affpcl {
namespace {

std::unique_ptr<Trace> make_trace(const Study& study, const StudyOptions& options, int ranks) {
  if (options.trace.empty()) return nullptr;
  if (ranks > 1)
    throw BadInput("`trace` follows a small run, which one process does best: leave mpirun out");
  return std::make_unique<Trace>(study, options.trace);
}

class Runner {
 public:
  Runner(const Study& study, const StudyOptions& options, Processes& processes)
      : study_(study),
        options_(options),
        processes_(processes),
        trace_(make_trace(study, options, processes.count())),
        plan_(study, options.split, threads_or_all(options.threads), processes),
        gathered_(study, plan_),
        checkpointing_(study, options, processes),
        workers_(plan_.teams(), resumed_tasks(), options.stop) {}

  // Waves of work, after each of which what is done reaches rank 0 and a checkpoint.
  void go() {
    for (bool more = true; more;) {
      workers_.wave(checkpointing_.steps(),
                    {[this](std::size_t task, Team& team) { return begin(task, team); },
                     [this](const TaskRun& t, std::int64_t steps) { progress(t.task(), steps); },
                     [this](TaskRun& t) { finished(t); }});
      more = processes_.any(!workers_.idle()) && !processes_.any(workers_.stopped());
      if (!more && workers_.stopped() && options_.stopped) options_.stopped();
      if (checkpointing_.on()) keep_under_way();
      send_news();
      checkpointing_.write();
      if (more) checkpointing_.set_pace();
    }
    gather_interrupted();
    if (trace_) trace_->write();
  }

  std::vector<SettingResult> results(bool& complete) {
    std::vector<SettingResult> settings;
    if (processes_.first()) settings = gathered_.finish(complete);
    complete = broadcast(processes_, std::int64_t{complete}) != 0;
    return settings;
  }

 private:
  // Whether rank 0 takes part in every task, so that it has all outcomes at once.
  bool rank_0_has_all() const { return plan_.splits_agents() || processes_.count() == 1; }

  // The tasks of this rank that are left, those under way first. Finished ones are gathered.
  std::vector<std::size_t> resumed_tasks() {
    std::vector<std::size_t> tasks = plan_.own();
    if (checkpointing_.on() && options_.resume) resume(tasks);
    for (std::size_t t : tasks) work_ += plan_.cost(t);
    return tasks;
  }
  void resume(std::vector<std::size_t>& tasks) {
    constexpr double kNew = 0, kFinished = 1, kUnderWay = 2;
    std::vector<double> kind(plan_.size(), kNew);
    Bytes states;  // of the tasks under way, where ranks take whole replicates
    std::vector<TaskState> found;
    on_all_ranks(processes_, [&] {
      found = checkpointing_.resume([this](const auto& read) { gathered_.check(read); });
    });
    for (TaskState& t : found) {
      const auto task = static_cast<std::size_t>(t.task);
      kind[task] = t.finished ? kFinished : kUnderWay;
      if (t.finished) {
        gathered_.add(task, std::move(t.replicate));
      } else if (plan_.splits_agents()) {
        begun_[task] = std::move(t.state);
      } else {
        append(pack(t), states);
      }
    }
    broadcast(processes_, kind);
    broadcast(processes_, states);
    for (TaskState& t : unpack_all(states))
      begun_[static_cast<std::size_t>(t.task)] = std::move(t.state);
    for (std::size_t t = 0; t < kind.size(); ++t)
      if (kind[t] == kUnderWay) begun_.try_emplace(t);  // rank 0 has the state
    std::erase_if(tasks, [&](std::size_t t) { return kind[t] == kFinished; });
    std::stable_partition(tasks.begin(), tasks.end(),
                          [&](std::size_t t) { return begun_.contains(t); });
  }

  std::unique_ptr<TaskRun> begin(std::size_t task, Team& team) {
    std::unique_ptr<TaskRun> t;
    try {
      t = std::make_unique<TaskRun>(task, plan_.spec(task), plan_.number(task), team);
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", study_.name, e.marked()));
    }
    if (trace_) trace_->follow(t->run(), plan_.number(task), t->problem().shape().agents);
    if (const auto state = begun_.find(task); state != begun_.end()) {
      t->run().load(state->second);
      const std::lock_guard lock(mutex_);
      done_ += cost(task, t->run().step());
    }
    return t;
  }

  double cost(std::size_t task, std::int64_t steps) const {
    return plan_.cost(task) * static_cast<double>(steps) /
           static_cast<double>(plan_.spec(task).run.steps);
  }
  void progress(std::size_t task, std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    done_ += cost(task, steps);
    if (options_.progress && processes_.first()) options_.progress(std::min(1.0, done_ / work_));
  }

  void finished(TaskRun& run) {
    TaskState outcome = run.finish();
    const std::lock_guard lock(mutex_);
    gathered_.describe(run.task(), run.problem());
    run.release();  // its memory is more than that of the results which are made next
    if (rank_0_has_all()) {
      if (processes_.first()) take(std::move(outcome));
    } else {
      append(pack(outcome), news_);
    }
  }

  // On rank 0.
  void take(TaskState task) {
    checkpointing_.keep(task);
    if (task.finished)
      gathered_.add(static_cast<std::size_t>(task.task), std::move(task.replicate));
  }

  void keep_under_way() {
    workers_.under_way([&](TaskRun& t) {
      TaskState state = t.save();
      if (!rank_0_has_all()) {
        append(pack(state), news_);
      } else if (processes_.first()) {
        take(std::move(state));
      }
    });
  }

  void send_news() {
    gather_news([this](TaskState t) { take(std::move(t)); });
  }

  // Where the study was interrupted, its result shows how far each task went.
  void gather_interrupted() {
    workers_.under_way([&](TaskRun& t) {
      const TaskState part = t.finish();
      gathered_.describe(t.task(), t.problem());
      if (part.replicate.steps > 0 && (processes_.first() || !rank_0_has_all()))
        append(pack(part), news_);
    });
    gather_news([this](TaskState t) {
      gathered_.add_interrupted(static_cast<std::size_t>(t.task), std::move(t.replicate));
    });
  }

  // Rank 0 calls f(task) for the news of every rank.
  template <class F>
  void gather_news(F f) {
    processes_.gather(std::exchange(news_, {}), [&](std::span<const std::byte> theirs) {
      for (TaskState& t : unpack_all(theirs)) f(std::move(t));
    });
  }

  const Study& study_;
  const StudyOptions& options_;
  Processes& processes_;
  std::unique_ptr<Trace> trace_;
  Plan plan_;
  Gathered gathered_;
  Checkpointing checkpointing_;
  std::map<std::size_t, RunState> begun_;  // what tasks go on from

  std::mutex mutex_;  // of gathered_ and all below, while workers run
  double done_ = 0, work_ = 0;
  Bytes news_;  // packed tasks that rank 0 does not have yet
  Workers workers_;
};

// Traffic and memory of all ranks.
void count_costs(Processes& processes, StudyResult& result) {
  const Processes::Traffic own = processes.traffic();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double numbers[] = {static_cast<double>(own.bytes), own.seconds,
                            1024 * static_cast<double>(usage.ru_maxrss)};
  gather(processes, numbers, [&](std::span<const double> theirs) {
    result.bytes_sent += static_cast<std::int64_t>(theirs[0]);
    result.communication_seconds = std::max(result.communication_seconds, theirs[1]);
    result.peak_bytes += theirs[2];
  });
}

}  // namespace

StudyResult run_study(const Study& study, const StudyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Processes& processes = options.processes != nullptr ? *options.processes : this_process();
  for (const Setting& s : study.settings) refuse_too_large(s.spec);
  StudyResult result;
  result.threads = threads_or_all(options.threads);
  result.ranks = processes.count();
  {
    Runner runner(study, options, processes);
    runner.go();
    result.settings = runner.results(result.complete);
  }
  count_costs(processes, result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace affpcl
