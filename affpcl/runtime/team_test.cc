#include "affpcl/runtime/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"
#include "tests/ranks.h"

namespace affpcl {
namespace {

TEST(Team, EveryLeafOnceInContiguousAscendingRuns) {
  for (int threads : {1, 2, 3, 5}) {
    const std::unique_ptr<Team> team = thread_team(threads);
    EXPECT_EQ(team->workers(), threads);
    for (std::int64_t leaves = 0; leaves <= 20; ++leaves) {
      std::vector<std::vector<std::int64_t>> seen(static_cast<std::size_t>(threads));
      std::mutex mutex;
      team->each(leaves, [&](std::int64_t leaf, int worker) {
        const std::lock_guard lock(mutex);
        seen[static_cast<std::size_t>(worker)].push_back(leaf);
      });
      std::int64_t next = 0;  // worker by worker the leaves are 0, 1, 2, …
      for (const auto& run : seen)
        for (std::int64_t leaf : run) ASSERT_EQ(leaf, next++) << threads << " threads";
      EXPECT_EQ(next, leaves);
    }
  }
}

// Workers that still spin, workers that sleep, and a caller that sleeps until the slowest worker is
// done: every item is worked on.
TEST(Team, CallsAtOnceAndAfterAWhile) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const std::unique_ptr<Team> team = thread_team(3);
  std::atomic<int> count{0};
  for (int call = 0; call < 300; ++call) {
    if (call % 30 == 0) nap();
    team->each(3, [&](std::int64_t, int worker) {
      if (call % 50 == 1 && worker == 2) nap();
      ++count;
    });
    ASSERT_EQ(count, 3 * (call + 1));
  }
}

TEST(Team, StopsWhereItIsAsked) {
  for (int threads : {1, 3}) {
    SCOPED_TRACE(threads);
    const std::unique_ptr<Team> team = thread_team(threads);
    std::atomic<bool> stop = false;
    std::atomic<int> count{0};
    team->set_stop(&stop);
    const auto work = [&](std::int64_t, int) {
      ++count;
      stop = true;
    };
    EXPECT_THROW(team->each(30, work), Interrupted);
    EXPECT_LE(count, threads);  // each worker ends what it has begun
    EXPECT_THROW(team->each(1, work), Interrupted);
    team->set_stop(nullptr);
    count = 0;
    team->each(30, work);
    EXPECT_EQ(count, 30);
  }
}

TEST(Team, ASerialTeamIsOneWorker) {
  EXPECT_EQ(serial_team()->workers(), 1);
  EXPECT_EQ(thread_team(0)->workers(), 1);
  EXPECT_EQ(thread_team(1)->workers(), 1);
}

TEST(Team, ExceptionsComeThroughAndTheTeamGoesOn) {
  for (int threads : {1, 2, 4}) {
    const std::unique_ptr<Team> team = thread_team(threads);
    for (std::int64_t bad = 0; bad < 8; ++bad) {
      try {
        team->each(8, [&](std::int64_t leaf, int) {
          if (leaf == bad) throw std::runtime_error("leaf " + std::to_string(leaf));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(), "leaf " + std::to_string(bad));
      }
      std::atomic<int> count{0};
      team->each(8, [&](std::int64_t, int) { ++count; });
      EXPECT_EQ(count, 8);
    }
    // All workers at once: one of the exceptions arrives.
    EXPECT_THROW(team->each(8, [](std::int64_t, int) { throw std::runtime_error("all"); }),
                 std::runtime_error);
  }
}

// Numbers whose sum depends on the order.
double number(std::int64_t leaf, int k) {
  const double x = static_cast<double>(leaf * 3 + k);
  return std::ldexp(std::sin(x), static_cast<int>(leaf * 7 % 40) - 20);
}

TEST(TeamSum, HasTheSameBitsForEveryTeam) {
  for (std::int64_t leaves : {1, 2, 3, 7, 16, 33}) {
    std::vector<double> want;
    for (int threads : {1, 2, 3, 4, 8}) {
      const std::unique_ptr<Team> team = thread_team(threads);
      TeamSum sum(3, threads);
      for (int call = 0; call < 3; ++call) {  // its memory is used again
        const double* total = sum(*team, leaves, [&](std::int64_t leaf, int, double* numbers) {
          for (int k = 0; k < 3; ++k) numbers[k] += number(leaf, k);
        });
        if (want.empty()) want.assign(total, total + 3);
        for (std::size_t k = 0; k < 3; ++k)
          ASSERT_EQ(std::bit_cast<std::uint64_t>(total[k]), std::bit_cast<std::uint64_t>(want[k]))
              << leaves << " leaves, " << threads << " threads";
      }
    }
  }
}

TEST(TeamSum, RecoversFromAnException) {
  const std::unique_ptr<Team> team = thread_team(2);
  TeamSum sum(1, 2);
  EXPECT_THROW(sum(*team, 6,
                   [](std::int64_t leaf, int, double* x) {
                     x[0] = 100;
                     if (leaf == 3) throw std::runtime_error("x");
                   }),
               std::runtime_error);
  EXPECT_EQ(*sum(*team, 6, [](std::int64_t, int, double* x) { x[0] += 1; }), 6);
}

TEST(Team, RanksAndTheirThreadsTakeEveryLeafOnce) {
  for (int ranks : {1, 2, 3, 5, 8})
    for (std::int64_t leaves : {1, 2, 7, 40}) {
      std::vector<std::atomic<int>> taken(static_cast<std::size_t>(leaves));
      Ranks::run(ranks, [&](Processes& processes) {
        const std::unique_ptr<Team> team = thread_team(2, processes);
        const Leaves own = team->own(leaves);
        team->each(leaves, [&](std::int64_t leaf, int) {
          ++taken[static_cast<std::size_t>(leaf)];
          if (leaf < own.first || leaf >= own.last) ADD_FAILURE() << "not its own";
        });
      });
      for (const std::atomic<int>& count : taken) EXPECT_EQ(count, 1);
    }
}

TEST(Collectives, AllToAllDeliversToEveryRank) {
  for (int ranks : {1, 2, 5})
    Ranks::run(ranks, [&](Processes& processes) {
      // From r to t go r + t numbers, each 100 r + t.
      const int me = processes.rank();
      std::vector<double> mine, want;
      std::vector<std::size_t> counts;
      for (int r = 0; r < ranks; ++r) {
        counts.push_back(static_cast<std::size_t>(me + r));
        mine.insert(mine.end(), counts.back(), 100 * me + r);
        want.insert(want.end(), counts.back(), 100 * r + me);
      }
      std::vector<double> got(want.size());
      all_to_all(processes, mine, counts, counts, got);
      if (got != want) ADD_FAILURE() << "rank " << me << " of " << ranks;
    });
}

TEST(TeamSum, HasTheSameBitsForAnyRanksAndThreads) {
  for (std::int64_t leaves : {1, 2, 3, 11, 64, 129}) {
    const auto fill = [](std::int64_t leaf, int, double* numbers) {
      numbers[0] = 1.0 / (1.0 + static_cast<double>(leaf));
      numbers[1] = std::sin(static_cast<double>(leaf)) * 1e8;
    };
    const std::unique_ptr<Team> alone = serial_team();
    TeamSum one(2, 1);
    const double* total = one(*alone, leaves, fill);
    for (const auto& [ranks, threads] : {std::pair{2, 1}, {3, 2}, {8, 1}, {13, 1}})
      Ranks::run(ranks, [&, threads = threads](Processes& processes) {
        const std::unique_ptr<Team> team = thread_team(threads, processes);
        TeamSum sum(2, threads);
        for (int again = 0; again < 2; ++again) {
          const double* got = sum(*team, leaves, fill);
          if (got[0] != total[0] || got[1] != total[1])
            ADD_FAILURE() << leaves << " leaves, rank " << processes.rank() << " of "
                          << processes.count();
        }
      });
  }
}

}  // namespace
}  // namespace affpcl
