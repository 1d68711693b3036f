#include "affpcl/runtime/team.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace affpcl {
namespace {

using Work = FunctionRef<void(std::int64_t, int)>;

class Serial final : public Team {
 public:
  int workers() const override { return 1; }
  void each(std::int64_t leaves, Work work) override {
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) work(leaf, 0);
  }
};

class Threads final : public Team {
 public:
  explicit Threads(int workers) : workers_(workers) {
    for (int w = 1; w < workers_; ++w) threads_.emplace_back([this, w] { serve(w); });
  }
  ~Threads() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  int workers() const override { return workers_; }

  void each(std::int64_t leaves, Work work) override {
    if (leaves == 1) return work(0, 0);  // nothing to share: let the others sleep
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      leaves_ = leaves;
      busy_ = workers_ - 1;
      ++call_;
    }
    wake_.notify_all();
    run(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void run(int w) {
    try {
      for (std::int64_t leaf = leaves_ * w / workers_; leaf < leaves_ * (w + 1) / workers_; ++leaf)
        (*work_)(leaf, w);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void serve(int w) {
    for (std::int64_t seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || call_ != seen; });
        if (stop_) return;
        seen = call_;
      }
      run(w);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  int workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const Work* work_ = nullptr;
  std::int64_t leaves_ = 0, call_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
};

}  // namespace

int threads_or_all(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<Team> serial_team() { return std::make_unique<Serial>(); }
std::unique_ptr<Team> thread_team(int threads) {
  return threads <= 1 ? serial_team() : std::make_unique<Threads>(threads);
}

const double* TeamSum::operator()(Team& team, std::int64_t leaves,
                                  FunctionRef<void(std::int64_t, int, double*)> work) {
  for (SumTree& tree : trees_) tree.clear();
  team.each(leaves, [&](std::int64_t leaf, int worker) {
    SumTree& tree = trees_[static_cast<std::size_t>(worker)];
    work(leaf, worker, tree.open());
    tree.push(leaf);
  });
  for (std::size_t w = 1; w < trees_.size(); ++w) trees_[0].append(trees_[w]);
  return trees_[0].finish(leaves);
}

}  // namespace affpcl
