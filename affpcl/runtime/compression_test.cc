// What a compressed message is, and what runs with compressed messages do.
#include "affpcl/runtime/compression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/harness_test.h"

namespace affpcl {
namespace {

using Kind = Compression::Kind;
using Numbers = std::vector<double>;

// A message of two parts, of 8 and 3 numbers, and a count that must come whole.
class Bench {
 public:
  explicit Bench(const Compression& how) : memory(12 * kLanes) {
    sum.add("a", 8), sum.add("b", 3), sum.add("count", 1);
    const std::string_view whole[] = {"count"};
    compressor = Compressor(how, sum, whole);
  }
  Numbers send(Numbers message, std::uint32_t round = 0, std::int64_t agent = 0) {
    compressor({.seed = 1, .replicate = 0, .step = round}, agent, message, memory.data(), scratch);
    return message;
  }
  SumLayout sum;
  Compressor compressor;
  Numbers memory;
  Scratch scratch;
};

const Numbers kMessage = {1, -8, 2, 0, 7, -3, 0.5, 4, 0.1, -0.3, 0.2, 42};

TEST(Compression, TopKSendsTheLargestOfEachPart) {
  Bench bench({.kind = Kind::kTopK, .share = 0.25});
  EXPECT_EQ(bench.send(kMessage), (Numbers{0, -8, 0, 0, 7, 0, 0, 0, 0, -0.3, 0, 42}));
  // A position among 8 takes 3 bits, among 3 two.
  EXPECT_EQ(bench.compressor.up(), 2 * (1 + 3 / 64.0) + 1 * (1 + 2 / 64.0) + 1);
  EXPECT_EQ(bench.compressor.down(), 12);
}

TEST(Compression, WhatIsLeftOutComesLater) {
  Bench bench({.kind = Kind::kTopK, .share = 0.25});
  Numbers sent(12), message = kMessage;
  for (std::uint32_t t = 0; t < 40; ++t) {
    const Numbers now = bench.send(message, t);
    for (std::size_t r = 0; r < 12; ++r) sent[r] += now[r];
  }
  for (std::size_t r = 0; r < 11; ++r)
    EXPECT_NEAR(sent[r] + bench.memory[r * kLanes], 40 * message[r], 1e-10) << r;
  EXPECT_NEAR(sent[0], 40, 8);  // and soon
  EXPECT_EQ(sent[11], 40 * 42);
}

TEST(Compression, TopKWithoutFeedbackForgets) {
  Bench bench({.kind = Kind::kTopK, .share = 0.25, .feedback = Compression::Feedback::kNone});
  for (std::uint32_t t = 0; t < 40; ++t) EXPECT_EQ(bench.send(kMessage, t)[0], 0);
  for (const double x : bench.memory) EXPECT_EQ(x, 0);
}

TEST(Compression, OfEqualNumbersTheFirstAreSent) {
  Bench bench({.kind = Kind::kTopK, .share = 0.25});
  EXPECT_EQ(bench.send(Numbers(12, 1.0)), (Numbers{1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}));
}

TEST(Compression, RandKSendsTheSamePlacesForAllAgentsAndIsUnbiased) {
  Bench bench({.kind = Kind::kRandK, .share = 0.25});
  const std::uint32_t rounds = 4000;
  Numbers mean(12);
  for (std::uint32_t t = 0; t < rounds; ++t) {
    const Numbers a = bench.send(kMessage, t, 0), b = bench.send(kMessage, t, 7);
    EXPECT_EQ(a, b);
    for (std::size_t r = 0; r < 12; ++r) {
      if (a[r] != 0) {
        EXPECT_EQ(a[r], kMessage[r] * (r < 8 ? 4 : r < 11 ? 3 : 1));
      }
      mean[r] += a[r] / rounds;
    }
  }
  for (std::size_t r = 0; r < 12; ++r)  // 4.5 standard errors: sd |x| sqrt(1/share - 1)
    EXPECT_NEAR(mean[r], kMessage[r], 4.5 * std::abs(kMessage[r]) * std::sqrt(3.0 / rounds));
  EXPECT_EQ(bench.compressor.up(), 2 + 1 + 1);
  EXPECT_EQ(bench.compressor.down(), 2 + 1 + 1);
}

TEST(Compression, RandKWithFeedbackKeepsTheRest) {
  Bench bench({.kind = Kind::kRandK, .share = 0.25, .feedback = Compression::Feedback::kError});
  const Numbers sent = bench.send(kMessage);
  for (std::size_t r = 0; r < 11; ++r) {
    EXPECT_TRUE(sent[r] == 0 || sent[r] == kMessage[r]);
    EXPECT_EQ(sent[r] + bench.memory[r * kLanes], kMessage[r]);
  }
}

TEST(Compression, QuantiseRoundsToLevelsAndIsUnbiased) {
  Bench bench({.kind = Kind::kQuantise, .bits = 3});  // levels -3 to 3
  const std::uint32_t rounds = 4000;
  Numbers mean(12);
  bool same = true;
  for (std::uint32_t t = 0; t < rounds; ++t) {
    const Numbers sent = bench.send(kMessage, t);
    same &= sent == bench.send(kMessage, t, 1);
    for (std::size_t r = 0; r < 8; ++r) {
      const double level = sent[r] / 8 * 3;
      ASSERT_NEAR(level, std::round(level), 1e-12);
      ASSERT_LT(std::abs(sent[r] - kMessage[r]), 8.0 / 3);
    }
    for (std::size_t r = 0; r < 12; ++r) mean[r] += sent[r] / rounds;
  }
  EXPECT_FALSE(same) << "agents round alike";
  for (std::size_t r = 0; r < 11; ++r)  // a level is s / 3, the sd at most half of it
    EXPECT_NEAR(mean[r], kMessage[r], 4.5 * (r < 8 ? 8 : 0.3) / 6 / std::sqrt(rounds)) << r;
  EXPECT_EQ(mean[3], 0);
  EXPECT_NEAR(mean[11], 42, 1e-10);
  EXPECT_EQ(bench.compressor.up(), 8 * 3 / 64.0 + 1 + 3 * 3 / 64.0 + 1 + 1);
}

// A part that would not get shorter is sent as it is.
TEST(Compression, NothingGetsLonger) {
  for (const Compression& how :
       {Compression{.kind = Kind::kTopK, .share = 1}, Compression{.kind = Kind::kRandK, .share = 1},
        Compression{.kind = Kind::kTopK, .share = 0.99}}) {
    Bench bench(how);
    EXPECT_EQ(bench.send(kMessage), kMessage) << to_text(how);
    EXPECT_EQ(bench.compressor.up(), 12);
  }
  SumLayout one;
  one.add("a", 1);
  EXPECT_EQ(Compressor({.kind = Kind::kQuantise, .bits = 2}, one, {}).up(), 1);
}

TEST(Compression, WhatIsNoNumberIsSent) {
  Bench bench({.kind = Kind::kTopK, .share = 0.25});
  Numbers message = kMessage;
  message[3] = std::nan("");
  EXPECT_TRUE(std::isnan(bench.send(message)[3]));
}

// ---- in runs ----

std::vector<double> seen(const Problem& problem, const Compression& how,
                         const std::vector<std::string>& kinds = {}) {
  std::vector<RunMethod> list = kinds.empty() ? every_method(0.005) : methods(kinds);
  for (RunMethod& m : list) m.compress = how;
  const std::size_t count = list.size();
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, std::move(list), options(14), *team);
  run.advance(14);
  return pictures(run, problem, count);
}

TEST(Compression, NoneIsTheMessageItself) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  std::vector<RunMethod> list = every_method(0.005);
  const std::size_t count = list.size();
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, std::move(list), options(14), *team);
  run.advance(14);
  EXPECT_TRUE(same_bits(seen(problem, {}), pictures(run, problem, count)));
}

// Sending all of it in another way changes no more than the order of sums.
TEST(Compression, AllOfItIsAllOfIt) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  const std::vector<double> all = seen(problem, {}), same = seen(problem, {Kind::kRandK, 1});
  ASSERT_EQ(all.size(), same.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::isfinite(all[i])) {
      EXPECT_NEAR(same[i], all[i], 1e-10 * (1 + std::abs(all[i]))) << i;
    }
}

// Every method of the catalogue with what the conformance tests leave out.
TEST(Compression, RandKStaysFinite) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  for (const auto feedback : {Compression::Feedback::kNone, Compression::Feedback::kError}) {
    std::vector<RunMethod> list = every_method(0.002);
    for (RunMethod& m : list) m.compress = {Kind::kRandK, 0.5, 8, feedback};
    const std::size_t count = list.size();
    const std::unique_ptr<Team> team = serial_team();
    Loop run(problem, std::move(list), options(60), *team);
    run.advance(60);
    for (std::size_t m = 0; m < count; ++m)
      for (std::int64_t i = 0; i < 70; ++i)
        for (int r = 0; r < 3; ++r) ASSERT_TRUE(std::isfinite(run.solution(m, i, r))) << m;
  }
}

TEST(Compression, TrafficIsCounted) {
  const Gaussian problem({.agents = 20, .dim = 5}, 1, 0);
  std::vector<RunMethod> list = methods({"fedavg", "affpcl", "independent"});
  for (RunMethod& m : list) m.compress = {.kind = Kind::kQuantise, .bits = 8};
  const std::unique_ptr<Team> team = serial_team();
  Loop run(problem, std::move(list), options(4), *team);
  run.advance(4);
  const std::vector<Record>& records = run.finish();
  EXPECT_EQ(records[0].sent, 5);
  EXPECT_EQ(records[0].up, 5 / 8.0 + 1);
  EXPECT_EQ(records[0].down, 5);
  EXPECT_EQ(records[1].up, 110 / 8.0 + 3);  // dx, dtheta, M
  EXPECT_EQ(records[1].published.up, 0);
  EXPECT_EQ(records[2].up, 0);
}

}  // namespace
}  // namespace affpcl
