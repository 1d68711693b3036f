// Processes that are threads of this one, so that tests can try many numbers of ranks.
#pragma once

#include <algorithm>
#include <barrier>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "affpcl/runtime/processes.h"

namespace affpcl {

class Ranks {
 public:
  // body(processes) as each of `count` ranks at once. A body must not throw: the others would wait.
  template <class Body>
  static void run(int count, Body body) {
    Ranks all(count);
    std::vector<std::thread> threads;
    for (int r = 0; r < count; ++r)
      threads.emplace_back([&all, &body, r] {
        Rank rank(all, r);
        body(rank);
      });
    for (std::thread& t : threads) t.join();
  }

 private:
  explicit Ranks(int count)
      : slots_(static_cast<std::size_t>(count)), counts_(slots_.size()), meet_(count) {}

  class Rank final : public Processes {
   public:
    Rank(Ranks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int count() const override { return static_cast<int>(all_.slots_.size()); }
    void share(std::span<const double> mine, std::span<const std::size_t> counts,
               std::span<double> all) override {
      together(mine, [&] {
        auto to = all.begin();
        for (std::size_t r = 0; r < counts.size(); ++r) {
          const std::span<double> from = all_.slots_[r];
          to = std::copy_n(from.begin(), counts[r], to);
        }
      });
    }
    void exchange(std::span<const double> mine, std::span<const std::size_t> to,
                  std::span<const std::size_t> from, std::span<double> all) override {
      const auto me = static_cast<std::size_t>(rank_);
      all_.counts_[me] = to;
      together(mine, [&] {
        auto at = all.begin();
        for (std::size_t r = 0; r < from.size(); ++r) {
          const std::span<const std::size_t> theirs = all_.counts_[r];
          const std::size_t before =
              std::accumulate(theirs.begin(), theirs.begin() + rank_, std::size_t{0});
          at = std::copy_n(all_.slots_[r].begin() + static_cast<std::ptrdiff_t>(before), from[r],
                           at);
        }
      });
    }
    bool any(bool mine) override {
      const double one = mine ? 1 : 0;
      bool found = false;
      together({&one, 1}, [&] {
        for (const std::span<double>& s : all_.slots_) found = found || s[0] != 0;
      });
      return found;
    }
    void spread(std::span<double> numbers) override {
      together(numbers, [&] {
        if (!first()) std::copy_n(all_.slots_[0].begin(), numbers.size(), numbers.begin());
      });
    }
    void to_first(std::span<const double> mine,
                  FunctionRef<void(std::span<const double>)> take) override {
      together(mine, [&] {
        if (first())
          for (const std::span<double>& s : all_.slots_) take(s);
      });
    }
    void from_first(std::span<double> mine, FunctionRef<void(std::span<double>)> fill) override {
      together(mine, [&] {
        if (first())
          for (const std::span<double>& s : all_.slots_) fill(s);
      });
    }

   private:
    // Everybody shows its numbers, acts, and takes them back.
    template <class Act>
    void together(std::span<const double> mine, Act act) {
      all_.slots_[static_cast<std::size_t>(rank_)] = {const_cast<double*>(mine.data()),
                                                      mine.size()};
      all_.meet_.arrive_and_wait();
      act();
      all_.meet_.arrive_and_wait();
    }

    Ranks& all_;
    int rank_;
  };

  std::vector<std::span<double>> slots_;
  std::vector<std::span<const std::size_t>> counts_;  // of an exchange, by rank
  std::barrier<> meet_;
};

}  // namespace affpcl
