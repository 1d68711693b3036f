#include "affpcl/runtime/team.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

using Work = FunctionRef<void(std::int64_t, int)>;

class Serial final : public Team {
 public:
  Serial(Processes& processes, Sums sums) : Team(1, processes, sums) {}
  void each(Leaves mine, Work work) override {
    for (std::int64_t leaf = mine.first; leaf < mine.last; ++leaf) {
      look_for_stop();
      work(leaf, 0);
    }
  }
};

// Spins for a short while. A thread that sleeps takes tens of microseconds to wake, as much as a
// small round; a thread that spins for long takes a processor from other work.
template <class Ready>
void spin_until(Ready ready) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLongest = std::chrono::microseconds(100);
  for (const auto end = Clock::now() + kLongest; !ready() && Clock::now() < end;) {
  }
}

class Threads final : public Team {
 public:
  Threads(int workers, Processes& processes, Sums sums) : Team(workers, processes, sums) {
    for (int w = 1; w < workers; ++w) threads_.emplace_back([this, w] { serve(w); });
  }
  ~Threads() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void each(Leaves mine, Work work) override {
    if (mine.count() <= 1) {  // one worker is enough: the others keep sleeping
      look_for_stop();
      for (std::int64_t leaf = mine.first; leaf < mine.last; ++leaf) work(leaf, 0);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      leaves_ = mine;
      busy_ = workers() - 1;
      ++call_;
    }
    wake_.notify_all();
    run(0);
    const auto done = [this] { return busy_ == 0; };
    spin_until(done);
    std::unique_lock lock(mutex_);
    done_.wait(lock, done);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void run(int w) {
    try {
      const Leaves mine = share_of(leaves_.count(), w, workers());
      for (std::int64_t leaf = mine.first; leaf < mine.last; ++leaf) {
        look_for_stop();
        (*work_)(leaves_.first + leaf, w);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void serve(int w) {
    for (std::int64_t seen = 0;;) {
      const auto called = [&] { return stop_ || call_ != seen; };
      spin_until(called);
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, called);
        if (stop_) return;
        seen = call_;
      }
      run(w);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const Work* work_ = nullptr;
  Leaves leaves_{};
  // Changed under the mutex, but read without it too.
  std::atomic<std::int64_t> call_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<bool> stop_ = false;
  std::exception_ptr error_;
};

}  // namespace

void Team::interrupt() const {
  if (processes_.count() == 1 || processes_.apart()) throw Interrupted();
}

int threads_or_all(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<Team> serial_team(Processes& processes, Sums sums) {
  return std::make_unique<Serial>(processes, sums);
}
std::unique_ptr<Team> thread_team(int threads, Processes& processes, Sums sums) {
  if (threads <= 1) return serial_team(processes, sums);
  return std::make_unique<Threads>(threads, processes, sums);
}

const double* TeamSum::operator()(Team& team, std::int64_t leaves,
                                  FunctionRef<void(std::int64_t, int, double*)> work) {
  for (SumTree& tree : trees_) tree.clear();
  team.each(leaves, [&](std::int64_t leaf, int worker) {
    SumTree& tree = trees_[static_cast<std::size_t>(worker)];
    work(leaf, worker, tree.open());
    tree.push(leaf);
  });
  for (std::size_t w = 1; w < trees_.size(); ++w) trees_[0].append(std::move(trees_[w]));
  return finish(team, leaves);
}

// Every rank gathers the nodes of all ranks and finishes the same tree.
const double* TeamSum::finish(Team& team, std::int64_t leaves) {
  SumTree& tree = trees_[0];
  Processes& processes = team.processes();
  if (processes.count() == 1) return tree.finish(leaves);
  const auto ranks = static_cast<std::size_t>(processes.count());
  std::size_t most = 0;
  counts_.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    most += counts_[r] =
        sizeof(double) * tree.width() * largest_nodes(team.own(leaves, static_cast<int>(r))).size();
  all_.resize(most / sizeof(double));
  mine_.resize(counts_[static_cast<std::size_t>(processes.rank())] / sizeof(double));
  tree.write(mine_);
  processes.all_gather(std::as_bytes(std::span(mine_)), counts_,
                       std::as_writable_bytes(std::span(all_)));
  tree.clear();
  const double* from = all_.data();
  for (std::size_t r = 0; r < ranks; ++r)
    from = tree.append(team.own(leaves, static_cast<int>(r)), from);
  return tree.finish(leaves);
}

}  // namespace affpcl
