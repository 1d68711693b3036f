#include "affpcl/runtime/side_by_side.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

// Sums of several threads, which all wait until each has one or is done: then they are added as one
// sum, in the order of the threads.
class Meeting {
 public:
  Meeting(std::size_t count, Processes& processes)
      : processes_(processes), waiting_(count), live_(count) {}

  void sum(std::size_t thread, std::span<Fixed> numbers, const std::string& purpose) {
    std::unique_lock lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
    waiting_[thread] = {numbers, purpose, true};
    const std::size_t turn = turn_;
    if (++arrived_ == live_) add();
    ready_.wait(lock, [&] { return turn_ != turn || failed_; });
    if (failed_) std::rethrow_exception(failed_);
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    if (--live_ > 0 && arrived_ == live_) add();
  }
  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = why;
    ready_.notify_all();
  }
  void rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  struct Waiting {
    std::span<Fixed> numbers;
    std::string purpose;
    bool here = false;
  };

  void add() {
    std::vector<Fixed> all;
    std::string purpose;
    for (const Waiting& w : waiting_) {
      if (!w.here) continue;
      all.insert(all.end(), w.numbers.begin(), w.numbers.end());
      if (purpose.find(w.purpose) == std::string::npos)
        purpose += (purpose.empty() ? "" : "; ") + w.purpose;
    }
    try {
      processes_.set_purpose(purpose);
      processes_.sum(all);
      const Fixed* from = all.data();
      for (Waiting& w : waiting_) {
        if (!w.here) continue;
        std::copy_n(from, w.numbers.size(), w.numbers.begin());
        from += w.numbers.size();
        w.here = false;
      }
    } catch (...) {
      failed_ = std::current_exception();
    }
    arrived_ = 0;
    ++turn_;
    ready_.notify_all();
  }

  Processes& processes_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Waiting> waiting_;
  std::size_t live_, arrived_ = 0, turn_ = 0;
  std::exception_ptr failed_;
};

class Lane final : public Processes {
 public:
  Lane(std::size_t thread, Meeting& meeting, const Processes& of)
      : thread_(thread), meeting_(meeting), of_(of) {}
  int rank() const override { return of_.rank(); }
  int count() const override { return of_.count(); }
  bool apart() const override { return true; }
  std::string name() const override { return of_.name(); }
  void set_purpose(std::string_view purpose) override { purpose_ = purpose; }
  void sum(std::span<Fixed> numbers) override { meeting_.sum(thread_, numbers, purpose_); }
  bool any(bool mine) override {
    Fixed count{.low = mine ? 1U : 0U, .high = 0};
    sum(std::span(&count, 1));
    return count != Fixed{};
  }
  void all_gather(ConstBytes, Counts, Bytes) override {
    throw BadInput("work that runs side by side only adds");
  }

 private:
  std::size_t thread_;
  Meeting& meeting_;
  const Processes& of_;
  std::string purpose_;
};

}  // namespace

void side_by_side(std::size_t count, Team& team, FunctionRef<void(std::size_t, Team&)> work) {
  if (!team.processes().apart() || count < 2) {
    for (std::size_t k = 0; k < count; ++k) work(k, team);
    return;
  }
  Meeting meeting(count, team.processes());
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::size_t k = 0; k < count; ++k)
    lanes.push_back(std::make_unique<Lane>(k, meeting, team.processes()));
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < count; ++k)
    threads.emplace_back([&, k] {
      try {
        const std::unique_ptr<Team> own = serial_team(*lanes[k], team.sums());
        own->set_agents(team.agents());
        own->set_stop(team.stop());
        work(k, *own);
        meeting.leave();
      } catch (...) {
        meeting.fail(std::current_exception());
      }
    });
  for (std::thread& t : threads) t.join();
  meeting.rethrow();
}

}  // namespace affpcl
