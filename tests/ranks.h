// Ranks that are threads of one process, so that tests can try many numbers of ranks.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "affpcl/runtime/processes.h"

namespace affpcl {

class Ranks {
 public:
  // body(processes) on each of `count` ranks at once. It must not throw: other ranks would wait.
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
      : slots_(static_cast<std::size_t>(count)), counts_(slots_.size()), barrier_(count) {}

  class Rank final : public Processes {
   public:
    Rank(Ranks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int count() const override { return static_cast<int>(all_.slots_.size()); }
    void all_gather(ConstBytes mine, Counts counts, Bytes all) override {
      meet(mine, [&] {
        auto to = all.begin();
        for (std::size_t r = 0; r < counts.size(); ++r)
          to = std::copy_n(all_.slots_[r].begin(), counts[r], to);
      });
    }
    void all_to_all(ConstBytes mine, Counts to, Counts from, Bytes all) override {
      all_.counts_[static_cast<std::size_t>(rank_)] = to;
      meet(mine, [&] {
        auto at = all.begin();
        for (std::size_t r = 0; r < from.size(); ++r) {
          const Counts theirs = all_.counts_[r];
          const std::size_t before =
              std::accumulate(theirs.begin(), theirs.begin() + rank_, std::size_t{0});
          at = std::copy_n(all_.slots_[r].begin() + static_cast<std::ptrdiff_t>(before), from[r],
                           at);
        }
      });
    }
    bool any(bool mine) override {
      bool found = false;
      meet(std::as_bytes(std::span(&mine, 1)), [&] {
        for (const Bytes& s : all_.slots_) found = found || s[0] != std::byte{0};
      });
      return found;
    }
    void broadcast(Bytes bytes) override {
      meet(bytes, [&] {
        if (!first()) std::copy_n(all_.slots_[0].begin(), bytes.size(), bytes.begin());
      });
    }
    void gather(ConstBytes mine, FunctionRef<void(ConstBytes)> take) override {
      meet(mine, [&] {
        if (first())
          for (const Bytes& s : all_.slots_) take(s);
      });
    }
    void scatter(Bytes mine, FunctionRef<void(Bytes)> fill) override {
      meet(mine, [&] {
        if (first())
          for (const Bytes& s : all_.slots_) fill(s);
      });
    }

   private:
    // Every rank shows its bytes; act() runs on each while all of them are there.
    template <class Act>
    void meet(ConstBytes mine, Act act) {
      all_.slots_[static_cast<std::size_t>(rank_)] = {const_cast<std::byte*>(mine.data()),
                                                      mine.size()};
      all_.barrier_.arrive_and_wait();
      act();
      all_.barrier_.arrive_and_wait();
    }

    Ranks& all_;
    int rank_;
  };

  std::vector<Processes::Bytes> slots_;
  std::vector<Processes::Counts> counts_;  // of all_to_all, by rank
  std::barrier<> barrier_;
};

}  // namespace affpcl
