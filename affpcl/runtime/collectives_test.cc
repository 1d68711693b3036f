#include "affpcl/runtime/collectives.h"

#include <gtest/gtest.h>

#include "affpcl/base/error.h"
#include "tests/ranks.h"

namespace affpcl {
namespace {

constexpr int kRanks[] = {1, 2, 3, 5};

// f(processes) on every rank; it returns whether all is as it should be.
template <class F>
void holds_on(int ranks, F f) {
  Ranks::run(ranks, [&](Processes& processes) {
    if (!f(processes)) ADD_FAILURE() << "rank " << processes.rank() << " of " << ranks;
  });
}

TEST(Collectives, AllGatherKeepsTheOrderOfRanks) {
  for (int ranks : kRanks)
    holds_on(ranks, [&](Processes& p) {
      const double mine[] = {1.0 * p.rank(), 10.0 * p.rank()};
      std::vector<double> want;
      for (int r = 0; r < ranks; ++r) want.insert(want.end(), {1.0 * r, 10.0 * r});
      return all_gather(p, mine) == want;
    });
}

TEST(Collectives, AllGatherListsTakesAsManyNumbersAsARankHas) {
  for (int ranks : kRanks)
    holds_on(ranks, [&](Processes& p) {
      const std::vector<double> mine(static_cast<std::size_t>(p.rank()), 0.5 + p.rank());
      std::vector<double> want;
      for (int r = 0; r < ranks; ++r) want.insert(want.end(), static_cast<std::size_t>(r), 0.5 + r);
      return all_gather_lists(p, mine) == want;
    });
}

TEST(Collectives, BroadcastBringsNumbersAndSizesOfRankZero) {
  for (int ranks : kRanks)
    holds_on(ranks, [](Processes& p) {
      std::vector<double> numbers(p.first() ? 3 : static_cast<std::size_t>(p.rank()), 1.5);
      broadcast(p, numbers);
      std::vector<std::byte> bytes(p.first() ? 5 : 0, std::byte{7});
      broadcast(p, bytes);
      return numbers == std::vector<double>(3, 1.5) && bytes == std::vector(5, std::byte{7}) &&
             broadcast(p, p.first() ? std::int64_t{1} << 62 : 0) == std::int64_t{1} << 62;
    });
}

TEST(Collectives, GatherAndScatterTakeTheRanksInOrder) {
  for (int ranks : kRanks)
    holds_on(ranks, [&](Processes& p) {
      const std::vector<double> mine(static_cast<std::size_t>(p.rank()), p.rank());
      std::vector<double> all, back(mine.size(), -1), want;
      gather(p, mine, [&](std::span<const double> theirs) {
        all.insert(all.end(), theirs.begin(), theirs.end());
      });
      for (int r = 0; p.first() && r < ranks; ++r)
        want.insert(want.end(), static_cast<std::size_t>(r), r);
      std::span<const double> rest = all;
      scatter(p, back, [&](std::span<double> theirs) {
        std::copy_n(rest.begin(), theirs.size(), theirs.begin());
        rest = rest.subspan(theirs.size());
      });
      return all == want && back == mine;
    });
}

TEST(Collectives, SumAddsOverRanks) {
  for (int ranks : kRanks)
    holds_on(ranks, [&](Processes& p) {
      std::vector<double> numbers = {1, 2.0 * p.rank()};
      sum(p, numbers);
      return numbers == std::vector<double>{1.0 * ranks, 1.0 * ranks * (ranks - 1)} &&
             sum(p, std::size_t{4}) == 4 * static_cast<std::size_t>(ranks);
    });
}

TEST(Collectives, StringsOfAnyLength) {
  for (int ranks : kRanks)
    holds_on(ranks, [&](Processes& p) {
      const auto strings = [](int r) {
        std::vector<std::string> s(static_cast<std::size_t>(r), std::string(1, '\0') + "näh");
        s.emplace_back();
        s.emplace_back(static_cast<std::size_t>(9 * r), 'x');
        return s;
      };
      std::vector<std::vector<std::string>> want;
      for (int r = 0; r < ranks; ++r) want.push_back(strings(r));
      std::vector<std::string> last = p.first() ? strings(4) : std::vector<std::string>{"other"};
      broadcast(p, last);
      return all_gather(p, strings(p.rank())) == want && last == strings(4);
    });
}

TEST(Collectives, AllRanksThrowTheSentenceOfTheLowest) {
  for (int ranks : kRanks)
    for (int bad = 0; bad < ranks; ++bad)
      holds_on(ranks, [&](Processes& p) {
        try {
          on_all_ranks(p, [&] {
            if (p.rank() >= bad) throw BadInput("rank " + std::to_string(p.rank()));
          });
        } catch (const BadInput& e) {
          return e.what() == "rank " + std::to_string(bad);
        }
        return false;
      });
}

}  // namespace
}  // namespace affpcl
