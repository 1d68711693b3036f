// The threads that run the blocks, of one process or of each of several ranks. Work comes in leaves
// of 256 agents. A rank takes a contiguous run of leaves, and so does each of its workers, in
// ascending order, so sums over leaves have the same bits for any team (math/sum_tree.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/sum_tree.h"
#include "affpcl/runtime/processes.h"
#include "affpcl/runtime/sums.h"

namespace affpcl {

class Team {
 public:
  Team(int workers, Processes& processes, Sums sums)
      : processes_(processes),
        sums_(processes.apart() ? Sums::kFixed : sums),
        scratch_(static_cast<std::size_t>(workers)) {}
  virtual ~Team() = default;
  int workers() const { return static_cast<int>(scratch_.size()); }  // of this rank
  // A worker's memory, kept from run to run: a new allocation costs as much as some small rounds.
  Scratch& scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)]; }
  // work(item, worker) for every item of a run, by the workers of this rank. The first exception of
  // any worker is rethrown here.
  virtual void each(Leaves run, FunctionRef<void(std::int64_t, int)> work) = 0;
  // The same for every leaf of this rank.
  void each(std::int64_t leaves, FunctionRef<void(std::int64_t, int)> work) {
    each(own(leaves), work);
  }

  Processes& processes() const { return processes_; }
  Sums sums() const { return sums_; }
  // The agents of a site that is apart from the others, once it is known which these are.
  void set_agents(Leaves run) { agents_ = run; }
  Leaves agents() const { return agents_; }
  // Once it is true, each() throws Interrupted. Not where ranks share the work: one that left would
  // be missed in the next collective.
  void set_stop(const std::atomic<bool>* stop) { stop_ = stop; }
  const std::atomic<bool>* stop() const { return stop_; }
  Leaves own(std::int64_t leaves) const { return own(leaves, processes_.rank()); }
  Leaves own(std::int64_t leaves, int rank) const {
    return share_of(leaves, rank, processes_.count());
  }

 protected:
  void look_for_stop() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) interrupt();
  }

 private:
  void interrupt() const;

  Processes& processes_;
  Sums sums_;
  Leaves agents_;
  const std::atomic<bool>* stop_ = nullptr;
  std::vector<Scratch> scratch_;
};

std::unique_ptr<Team> serial_team(Processes& processes = this_process(), Sums sums = Sums::kFloat);
// Keeps its threads, which sleep between calls.
std::unique_ptr<Team> thread_team(int threads, Processes& processes = this_process(),
                                  Sums sums = Sums::kFloat);
int threads_or_all(int threads);  // 0: as many as the machine has

// A sum over leaves, `width` numbers each, whose memory is kept from call to call.
class TeamSum {
 public:
  TeamSum() = default;
  TeamSum(std::size_t width, int workers) {
    for (int w = 0; w < workers; ++w) trees_.emplace_back(width);
  }
  // work(leaf, worker, numbers) fills one leaf; returns the total, valid until the next call.
  const double* operator()(Team& team, std::int64_t leaves,
                           FunctionRef<void(std::int64_t, int, double*)> work);

 private:
  const double* finish(Team& team, std::int64_t leaves);

  std::vector<SumTree> trees_;
  std::vector<double> mine_, all_;   // nodes of this rank; of all
  std::vector<std::size_t> counts_;  // bytes, by rank
};

}  // namespace affpcl
