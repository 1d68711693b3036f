#include "affpcl/study/study.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/study/checkpoint.h"
#include "affpcl/study/limits.h"
#include "affpcl/study/replica.h"
#include "affpcl/study/summarise.h"
#include "affpcl/study/task.h"
#include "affpcl/study/trace.h"

namespace affpcl {
namespace {

constexpr double kCheckpointSeconds = 60;  // between two, where nobody says otherwise
constexpr std::int64_t kFirstQuota = 64;   // steps until the first one

// |x^i_* - x^c_*| by agent; empty where the truth is not known.
std::vector<double> distances(const Problem& problem) {
  std::vector<double> out;
  const Truth* truth = problem.truth();
  if (truth == nullptr || truth->xc.empty()) return out;
  const Shape shape = problem.shape();
  for (std::int64_t i = 0; i < shape.agents; ++i) {
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

// Collects what the replicates of one setting did.
struct Collected {
  std::vector<Replicate> replicates;
  std::int64_t left = 0;
};

// A replicate under way.
struct Running {
  std::size_t task;
  Replica replica;
  std::int64_t steps = 0;
  std::vector<double> distance;  // of all agents, in the first process
};

class Runner {
 public:
  Runner(const Study& study, const StudyOptions& options)
      : study_(study),
        options_(options),
        processes_(options.processes != nullptr ? *options.processes : this_process()),
        described_(study.settings.size()) {
    for (const Setting& s : study.settings) {
      Collected c;
      c.replicates.resize(static_cast<std::size_t>(s.spec.replicates));
      c.left = s.spec.replicates;
      collected_.push_back(std::move(c));
      for (std::int64_t r = 0; r < s.spec.replicates; ++r)
        tasks_.emplace_back(collected_.size() - 1, static_cast<std::uint32_t>(r));
    }
    result_.settings.resize(study.settings.size());
  }

  StudyResult go() {
    const auto start = std::chrono::steady_clock::now();
    for (const Setting& s : study_.settings) refuse_too_large(s.spec);
    if (!options_.trace.empty()) {
      if (processes_.count() > 1)
        throw BadInput(
            "`trace` follows a small run, which one process does best: leave mpirun out");
      trace_ = std::make_unique<Trace>(study_, options_.trace);
    }
    if (!options_.checkpoint.empty() && processes_.first())
      checkpoints_ = std::make_unique<Checkpoints>(options_.checkpoint, study_, options_.resume);
    quota_ = options_.checkpoint.empty() ? INT64_MAX
             : options_.every > 0        ? options_.every
                                         : kFirstQuota;
    result_.threads = threads_or_all(options_.threads);
    result_.ranks = processes_.count();
    deal();
    resume();
    make_workers();
    bool more = true;
    while (more) {
      wave();
      more = processes_.any(next_ < mine_.size() || under_way()) && !processes_.any(flagged());
      keep(more);
    }
    if (processes_.first()) conclude_settings();
    if (trace_) trace_->write();
    result_.complete = broadcast(processes_, std::int64_t{result_.complete}) != 0;
    count_costs();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  struct Worker {
    std::unique_ptr<Team> team;
    std::unique_ptr<Running> running;
  };

  static double cost(const Spec& spec) {
    return static_cast<double>(spec.run.steps) * static_cast<double>(spec.methods.size()) *
           static_cast<double>(agents_hint(spec) + 50);
  }
  double share_of_task(const Running& r, std::int64_t steps) const {
    return cost(spec_of(r.task)) * static_cast<double>(steps) / static_cast<double>(r.steps);
  }
  bool flagged() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }
  bool under_way() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& w) { return w.running != nullptr; });
  }
  const Spec& spec_of(std::size_t task) const { return study_.settings[tasks_[task].first].spec; }
  std::uint32_t number_of(std::size_t task) const {
    return static_cast<std::uint32_t>(spec_of(task).first + tasks_[task].second);
  }

  // Who does what. Many agents: processes and threads share each replicate's blocks. Few agents:
  // each takes whole replicates. The bits are the same either way.
  void deal() {
    std::int64_t most = 0;
    for (const Setting& s : study_.settings) most = std::max(most, agents_hint(s.spec));
    const std::int64_t leaves = leaves_of(most);
    const auto share = [&](std::int64_t workers, std::size_t tasks) {
      return leaves >= 8 * workers || tasks < static_cast<std::size_t>(workers);
    };
    const auto ranks = static_cast<std::size_t>(processes_.count());
    split_agents_ =
        ranks > 1 && (options_.split == StudyOptions::Split::kAuto
                          ? share(std::int64_t{result_.ranks} * result_.threads, tasks_.size())
                          : options_.split == StudyOptions::Split::kAgents);
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (split_agents_ || t % ranks == static_cast<std::size_t>(processes_.rank()))
        mine_.push_back(t);
    share_threads_ = split_agents_ || share(result_.threads, mine_.size());
    leaves_ = leaves;
  }

  void make_workers() {
    for (std::size_t task : mine_) work_ += cost(spec_of(task));
    Processes& processes = split_agents_ ? processes_ : this_process();
    if (share_threads_ || result_.threads == 1) {
      workers_.push_back({thread_team(leaves_ > 1 ? result_.threads : 1, processes), nullptr});
    } else {
      for (int t = 0; t < result_.threads; ++t) workers_.push_back({serial_team(), nullptr});
    }
  }

  // What the checkpoint holds: finished replicates in the first process, the rest where it goes on.
  void resume() {
    if (options_.checkpoint.empty() || !options_.resume) return;
    std::vector<double> kind(tasks_.size(), 0.0), states;  // 1: finished, 2: under way
    if (checkpoints_)
      for (TaskState& t : checkpoints_->read(options_.note)) {
        if (t.task >= tasks_.size()) continue;
        kind[t.task] = t.finished ? 1 : 2;
        if (!t.finished && !split_agents_) append(t, states);
        if (t.finished) take_in(t.task, unpack(t));
        if (checkpoints_) kept_[t.task] = std::move(t);
      }
    broadcast(processes_, kind);
    broadcast(processes_, states);
    for (std::span<const double> rest = states; !rest.empty();) {
      TaskState t = take(rest);
      begun_[t.task] = std::move(t.state);
    }
    if (split_agents_)
      for (std::size_t t = 0; t < kind.size(); ++t)
        if (kind[t] == 2) begun_[t] = processes_.first() ? kept_[t].state : RunState{};
    std::erase_if(mine_, [&](std::size_t t) { return kind[t] == 1; });
    // What is under way first.
    std::stable_partition(mine_.begin(), mine_.end(),
                          [&](std::size_t t) { return begun_.contains(t); });
  }

  // All workers, each for so many steps as lie between two checkpoints.
  void wave() {
    if (workers_.size() == 1) {
      work(workers_.front());
    } else {
      std::vector<std::thread> pool;
      for (Worker& w : workers_) pool.emplace_back([this, &w] { work(w); });
      for (std::thread& t : pool) t.join();
    }
    if (error_) std::rethrow_exception(error_);
  }

  void work(Worker& worker) {
    std::int64_t left = quota_;
    try {
      while (left > 0) {
        if (!worker.running) {
          std::size_t task = 0;
          if (!next_task(*worker.team, task)) return;
          worker.running = begin(task, *worker.team);
        }
        if (!advance(*worker.running, left)) return;
        Replicate replicate = outcome(*worker.running);
        const std::lock_guard lock(mutex_);
        describe(*worker.running);
        finished(worker.running->task, std::move(replicate));
        worker.running.reset();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  // Everything comes together in the first process: at once where it takes part in all replicates,
  // else after the wave.
  bool first_is_there() const { return split_agents_ || processes_.count() == 1; }
  void finished(std::size_t task, Replicate replicate) {
    if (!first_is_there()) {
      news_.push_back(pack(task, replicate));
    } else if (processes_.first()) {
      if (checkpoints_) kept_[task] = pack(task, replicate);
      take_in(task, std::move(replicate));
    }
  }

  bool next_task(Team& team, std::size_t& task) {
    if (team.processes().any(flagged())) return false;
    const std::lock_guard lock(mutex_);
    if (next_ == mine_.size() || error_) return false;
    task = mine_[next_++];
    return true;
  }

  // At most `left` steps; true at the end.
  bool advance(Running& r, std::int64_t& left) {
    Run& run = *r.replica.run;
    const std::int64_t every = std::max<std::int64_t>(1, r.steps / 50), before = run.step(),
                       until = before + std::min(left, r.steps - before);
    const double cost_of_step = share_of_task(r, 1);
    std::int64_t told = before;
    const auto tell = [&] {
      const std::lock_guard lock(mutex_);
      done_ += cost_of_step * static_cast<double>(run.step() - told);
      told = run.step();
      if (options_.progress && processes_.first()) options_.progress(std::min(1.0, done_ / work_));
    };
    run.advance(until, options_.stop, [&] {
      if (run.step() - told >= every) tell();
    });
    if (run.step() > told) tell();
    left -= run.step() - before;
    return run.done();
  }

  // After a wave: what is new goes to the first process, and into a checkpoint.
  void keep(bool more) {
    const bool saves = !options_.checkpoint.empty();
    if (saves)
      for (Worker& w : workers_)
        if (w.running) {
          TaskState t{w.running->task, false, w.running->replica.run->save()};
          if (!first_is_there()) {
            news_.push_back(std::move(t));
          } else if (checkpoints_) {
            kept_[t.task] = std::move(t);
          }
        }
    tell_first([&](TaskState t) {
      if (t.finished) take_in(t.task, unpack(t));
      if (checkpoints_) kept_[t.task] = std::move(t);
    });
    if (checkpoints_) {
      std::vector<TaskState*> all;
      for (auto& [task, t] : kept_) all.push_back(&t);
      checkpoints_->write(all);
    }
    if (more) {
      if (saves) next_quota();
      return;
    }
    // Interrupted: what has been done is shown.
    for (Worker& w : workers_)
      if (w.running) {
        const Replicate part = outcome(*w.running);
        describe(*w.running);
        if (part.steps > 0 && (processes_.first() || !first_is_there()))
          news_.push_back(pack(w.running->task, part));
      }
    tell_first([&](const TaskState& t) {
      collected_[tasks_[t.task].first].replicates[tasks_[t.task].second] = unpack(t);
    });
  }

  // Everybody's news to the first process, which calls f(task).
  template <class F>
  void tell_first(F f) {
    std::vector<double> numbers;
    for (const TaskState& t : news_) append(t, numbers);
    news_.clear();
    gather(processes_, numbers, [&](std::span<const double> rest) {
      while (!rest.empty()) f(take(rest));
    });
  }

  void count_costs() {
    const Processes::Traffic own = processes_.traffic();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double numbers[] = {static_cast<double>(own.bytes), own.seconds,
                              1024 * static_cast<double>(usage.ru_maxrss)};
    gather(processes_, numbers, [&](std::span<const double> theirs) {
      result_.bytes_sent += static_cast<std::int64_t>(theirs[0]);
      result_.communication_seconds = std::max(result_.communication_seconds, theirs[1]);
      result_.peak_bytes += theirs[2];
    });
  }

  // Steps until the next checkpoint: as asked for, else so many as take about a minute.
  void next_quota() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - wave_began_).count();
    wave_began_ = now;
    if (options_.every > 0) return;
    const double factor = std::clamp(kCheckpointSeconds / std::max(seconds, 1e-3), 0.1, 8.0);
    quota_ = broadcast(processes_, static_cast<std::int64_t>(std::clamp(
                                      static_cast<double>(quota_) * factor, 1.0, 1e15)));
  }

  // f(); what it refuses, it refuses of this study.
  template <class F>
  auto named(F f) const {
    try {
      return f();
    } catch (const BadInput& e) {
      throw BadInput(fmt::format("{}: {}", study_.name, e.marked()));
    }
  }

  std::unique_ptr<Running> begin(std::size_t task, Team& team) {
    auto r = std::make_unique<Running>();
    r->task = task;
    r->steps = spec_of(task).run.steps;
    r->replica = named([&] { return make_replica(spec_of(task), number_of(task), team); });
    const auto& [problem, run] = r->replica;
    if (team.processes().first()) r->distance = distances(*problem);
    if (team.processes().count() > 1) problem->keep(run->first_block(), run->last_block());
    if (trace_) trace_->follow(*run, number_of(task), problem->shape().agents);
    if (const auto state = begun_.find(task); state != begun_.end()) {
      run->load(state->second);
      const std::lock_guard lock(mutex_);
      done_ += share_of_task(*r, run->step());
    }
    return r;
  }

  Replicate outcome(Running& r) const {
    Run& run = *r.replica.run;
    return {run.finish(), run.step(), number_of(r.task), r.distance};
  }

  void describe(const Running& r) { describe(tasks_[r.task].first, *r.replica.problem); }
  void describe(std::size_t setting, const Problem& problem) {
    if (described_[setting]) return;
    described_[setting] = {curve_agents(study_.settings[setting].spec, problem.shape().agents),
                           problem.more_errors(), problem.agent_names(), problem.unknown_names()};
  }

  void take_in(std::size_t task, Replicate replicate) {
    const auto [setting, index] = tasks_[task];
    Collected& c = collected_[setting];
    c.replicates[index] = std::move(replicate);
    if (--c.left == 0) summarise(setting);
  }

  void conclude_settings() {
    for (std::size_t i = 0; i < collected_.size(); ++i)
      if (collected_[i].left > 0) summarise(i), result_.complete = false;
    std::erase_if(result_.settings, [](const SettingResult& s) { return s.methods.empty(); });
  }

  void summarise(std::size_t setting) {
    if (!described_[setting])  // all its replicates were run elsewhere
      for (std::size_t t = 0; t < tasks_.size() && !described_[setting]; ++t)
        if (tasks_[t].first == setting)
          describe(setting, *named([&] { return make_problem(spec_of(t), number_of(t)); }));
    std::vector<Replicate> replicates = std::move(collected_[setting].replicates);
    collected_[setting].replicates.clear();
    result_.settings[setting] =
        affpcl::summarise(study_.settings[setting], *described_[setting], replicates);
  }

  const Study& study_;
  const StudyOptions& options_;
  Processes& processes_;
  StudyResult result_;
  std::vector<std::optional<Described>> described_;           // by setting
  std::vector<Collected> collected_;                          // by setting
  std::vector<std::pair<std::size_t, std::uint32_t>> tasks_;  // setting, replicate
  std::int64_t leaves_ = 1;
  bool split_agents_ = false;      // among processes; otherwise they take whole replicates
  bool share_threads_ = false;     // all threads of a process work on one replicate
  std::vector<std::size_t> mine_;  // tasks of this process
  std::vector<Worker> workers_;
  std::map<std::size_t, RunState> begun_;     // tasks that a checkpoint holds under way
  std::map<std::size_t, TaskState> kept_;     // what the next checkpoint holds
  std::unique_ptr<Checkpoints> checkpoints_;  // in the first process
  std::int64_t quota_ = 0;                    // steps of a worker between two checkpoints
  std::chrono::steady_clock::time_point wave_began_ = std::chrono::steady_clock::now();
  std::unique_ptr<Trace> trace_;

  std::mutex mutex_;  // of all below
  std::size_t next_ = 0;
  std::vector<TaskState> news_;  // that the first process has not heard of
  double done_ = 0, work_ = 0;
  std::exception_ptr error_;
};

}  // namespace

StudyResult run_study(const Study& study, const StudyOptions& options) {
  return Runner(study, options).go();
}

}  // namespace affpcl
