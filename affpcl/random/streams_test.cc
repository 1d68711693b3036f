#include "affpcl/random/streams.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "affpcl/math/kernels.h"
#include "tests/source_dir.h"

namespace affpcl {
namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

constexpr std::uint32_t kPurposes = 8;
Purpose purpose_of(std::uint32_t i) { return static_cast<Purpose>(i); }

// ---- what a number is: known answers, and Random123 itself ----

struct Answer {
  Key key;
  std::int64_t agent;
  Purpose purpose;
  std::uint32_t index;
  double uniform, normal;
};

std::vector<Answer> known_answers() {  // columns: see known_answers.py
  std::ifstream in(std::string(testing::SourceDir()) + "/affpcl/random/known_answers.txt");
  std::vector<Answer> all;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#' || line[0] == 's') continue;
    std::stringstream cells(line);
    std::vector<std::string> c;
    for (std::string cell; std::getline(cells, cell, ',');) c.push_back(cell);
    EXPECT_EQ(c.size(), 8u) << line;
    const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(std::stoull(c[i])); };
    all.push_back({{std::stoull(c[0]), word(1), word(3)},
                   std::stoll(c[2]),
                   purpose_of(word(4)),
                   word(5),
                   std::strtod(c[6].c_str(), nullptr),
                   std::strtod(c[7].c_str(), nullptr)});
  }
  return all;
}

class Streams : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_instruction_set(GetParam()); }
  void TearDown() override { use_instruction_set(""); }
};

TEST_P(Streams, KnownAnswers) {
  const std::vector<Answer> answers = known_answers();
  ASSERT_GE(answers.size(), 50u);
  for (const Answer& a : answers) {
    const double u = uniform(a.key, a.agent, a.purpose, a.index);
    const double z = normal(a.key, a.agent, a.purpose, a.index);
    EXPECT_EQ(bits(u), bits(a.uniform)) << a.key.seed << ' ' << a.agent << ' ' << a.index;
    // 1e-14 relative; 1e-15 more, for the rounding of the angle shows near a zero of the sine.
    EXPECT_NEAR(z, a.normal, 1e-14 * std::abs(a.normal) + 1e-15)
        << a.key.seed << ' ' << a.agent << ' ' << a.index;
  }
}

TEST_P(Streams, AreRandom123sPhilox) {
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const Key key{0x9E3779B97F4A7C15ull * (i + 1), i * 2654435761u, i * 40503u};
    const std::int64_t agent = static_cast<std::int64_t>(i) * 1999993;
    const std::uint32_t purpose = i % kPurposes, index = (i * 7919) % (1u << 25);
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<std::uint32_t>(agent), key.step, key.replicate, purpose << 24 | index / 2}};
    const r123::Philox4x32::key_type k = {
        {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
    const auto x = r123::Philox4x32()(counter, k);
    const std::size_t at = index % 2 * 2;
    const std::uint64_t word = std::uint64_t{x[at + 1]} << 32 | x[at];
    const double want = (static_cast<double>(word >> 12) + 0.5) * 0x1p-52;
    ASSERT_EQ(bits(uniform(key, agent, purpose_of(purpose), index)), bits(want)) << i;
  }
}

// ---- whole blocks are the same numbers ----

TEST_P(Streams, BlocksEqualSingleNumbersToTheBit) {
  const Key key{42, 3, 17};
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{64}, std::int64_t{3999999936}})
    for (const std::uint32_t index : {0u, 2u, 10u})
      for (int rows = 0; rows <= 5; ++rows)
        for (const bool gaussian : {false, true}) {
          const Buffer space(static_cast<std::size_t>(rows + 1) * kLanes);
          const Out out{space.data(), rows};
          fill({space.data() + rows * kLanes, 1}, -7);
          const Purpose purpose = rows % 2 == 0 ? Purpose::kSample : Purpose::kMethod;
          (gaussian ? normals : uniforms)(key, Lanes{first, kLanes}, purpose, index, out);
          for (int r = 0; r < rows; ++r)
            for (int l = 0; l < kLanes; ++l) {
              const double want = (gaussian ? normal : uniform)(
                  key, first + l, purpose, index + static_cast<std::uint32_t>(r));
              ASSERT_EQ(bits(out.row(r)[l]), bits(want))
                  << (gaussian ? "normal" : "uniform") << " row " << r << " lane " << l;
            }
          for (int l = 0; l < kLanes; ++l) ASSERT_EQ(space.data()[rows * kLanes + l], -7);
        }
}

TEST_P(Streams, AnAgentsNumbersEqualSingleNumbersToTheBit) {
  const Key key{42, 3, 17};
  for (const std::int64_t agent : {std::int64_t{0}, std::int64_t{5}, std::int64_t{3999999936}})
    for (const std::size_t count : {0u, 1u, 2u, 5u, 15u, 16u, 17u, 40u}) {
      std::vector<double> normals(count + 1, -7), uniforms = normals;
      normals_of(key, agent, Purpose::kObjective, {normals.data(), count});
      uniforms_of(key, agent, Purpose::kObjective, {uniforms.data(), count});
      for (std::uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(bits(normals[i]), bits(normal(key, agent, Purpose::kObjective, i)));
        ASSERT_EQ(bits(uniforms[i]), bits(uniform(key, agent, Purpose::kObjective, i)));
      }
      EXPECT_EQ(normals.back(), -7);
      EXPECT_EQ(uniforms.back(), -7);
    }
}

TEST_P(Streams, NormalsAboutAMeanAreThatMuchMore) {
  const Key key{7, 1, 2};
  const Lanes lanes{128, 21};
  for (int rows = 1; rows <= 5; ++rows)
    for (int with = 0; with <= rows; ++with) {  // rows that have a mean
      const Buffer plain(5 * kLanes), about(5 * kLanes), mean(5 * kLanes);
      for (int i = 0; i < 5 * kLanes; ++i) mean.data()[i] = 0.1 * i - 3;
      normals(key, lanes, Purpose::kSample, 4, {plain.data(), rows});
      normals_about({mean.data(), with, kLanes}, key, lanes, Purpose::kSample, 4,
                    {about.data(), rows});
      for (int r = 0; r < rows; ++r)
        for (int l = 0; l < lanes.count; ++l) {
          const int i = r * kLanes + l;
          const double want = plain.data()[i] + (r < with ? mean.data()[i] : 0);
          ASSERT_EQ(bits(about.data()[i]), bits(want)) << "row " << r << " of " << rows;
        }
    }
}

TEST_P(Streams, UniformsDoNotDependOnTheInstructionSet) {
  const Buffer here(4 * kLanes), best(4 * kLanes);
  uniforms({5, 1, 2}, {0, kLanes}, Purpose::kSample, 0, {here.data(), 4});
  use_instruction_set("");
  uniforms({5, 1, 2}, {0, kLanes}, Purpose::kSample, 0, {best.data(), 4});
  for (int i = 0; i < 4 * kLanes; ++i) ASSERT_EQ(bits(here.data()[i]), bits(best.data()[i]));
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, Streams,
                         ::testing::ValuesIn(available_instruction_sets()),
                         [](const auto& set) { return set.param; });

// ---- each part of the meaning counts ----

TEST(StreamKeys, EveryPartOfTheMeaningMatters) {
  const Key key{1, 0, 0};
  const double u = uniform(key, 0, Purpose::kSample, 0);
  EXPECT_EQ(u, uniform(key, 0, Purpose::kSample, 0));  // a pure function
  EXPECT_NE(u, uniform({2, 0, 0}, 0, Purpose::kSample, 0));
  EXPECT_NE(u, uniform({1ull + (1ull << 32), 0, 0}, 0, Purpose::kSample, 0));
  EXPECT_NE(u, uniform({1, 1, 0}, 0, Purpose::kSample, 0));
  EXPECT_NE(u, uniform({1, 0, 1}, 0, Purpose::kSample, 0));
  EXPECT_NE(u, uniform(key, 1, Purpose::kSample, 0));
  EXPECT_NE(u, uniform(key, 0, Purpose::kSystemA, 0));
  EXPECT_NE(u, uniform(key, 0, Purpose::kSample, 1));
  EXPECT_NE(u, uniform(key, 0, Purpose::kSample, 2));
}

// False alarm, were the numbers random: 98304^2/2 pairs at 2^-52 each, 1e-6.
TEST(StreamKeys, NoTwoMeaningsShareANumber) {
  std::set<double> seen;
  std::size_t count = 0;
  for (std::uint32_t seed = 0; seed < 2; ++seed)
    for (std::uint32_t replicate = 0; replicate < 4; ++replicate)
      for (std::uint32_t step = 0; step < 8; ++step)
        for (std::uint32_t agent = 0; agent < 16; ++agent)
          for (std::uint32_t purpose = 0; purpose < kPurposes; ++purpose)
            for (std::uint32_t index = 0; index < 12; ++index, ++count)
              seen.insert(uniform({seed, replicate, step}, agent, purpose_of(purpose), index));
  EXPECT_EQ(seen.size(), count);
}

// ---- statistics, on fixed seeds; each bound has a false-alarm rate of at most 1e-6 over seeds
// ----

constexpr int kMany = 1 << 17;

std::vector<double> many(bool gaussian) {
  std::vector<double> all;
  const Buffer space(kLanes);
  for (std::uint32_t t = 0; all.size() < kMany; ++t) {
    (gaussian ? normals : uniforms)({11, 0, t}, {0, kLanes}, Purpose::kSample, 0,
                                    {space.data(), 1});
    all.insert(all.end(), space.data(), space.data() + kLanes);
  }
  return all;
}

// sqrt(N) sup|F_N - F|; above 2.7 with probability 2 exp(-2 2.7^2) = 9e-7.
double kolmogorov(std::vector<double> x, const std::function<double(double)>& cdf) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double F = cdf(x[i]), k = static_cast<double>(i);
    most = std::max({most, F - k / n, (k + 1) / n - F});
  }
  return most * std::sqrt(n);
}

TEST(StreamStatistics, UniformsAreUniform) {
  const std::vector<double> u = many(false);
  for (double x : u) ASSERT_TRUE(x > 0 && x < 1);
  EXPECT_LT(kolmogorov(u, [](double x) { return x; }), 2.7);
}

TEST(StreamStatistics, NormalsAreNormal) {
  const std::vector<double> z = many(true);
  EXPECT_LT(kolmogorov(z, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }), 2.7);
  // Moments 1 to 4, each within five of its standard errors (rate 6e-7 each).
  const double n = static_cast<double>(z.size());
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (double x : z) m1 += x / n, m2 += x * x / n, m3 += x * x * x / n, m4 += x * x * x * x / n;
  EXPECT_NEAR(m1, 0, 5 * std::sqrt(1 / n));
  EXPECT_NEAR(m2, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m3, 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(m4, 3, 5 * std::sqrt(96 / n));
}

// Pairs of neighbouring meanings on a 16 x 16 board: chi-square with 255 degrees of freedom is
// above 377.1 with probability 1e-6.
TEST(StreamStatistics, NeighboursAreIndependent) {
  const auto board = [](const std::function<std::pair<double, double>(std::uint32_t)>& draw) {
    constexpr std::uint32_t kPairs = 1 << 15;
    std::vector<double> cells(256);
    for (std::uint32_t i = 0; i < kPairs; ++i) {
      const auto [u, v] = draw(i);
      ++cells[static_cast<std::size_t>(u * 16) * 16 + static_cast<std::size_t>(v * 16)];
    }
    double chi2 = 0;
    const double expected = kPairs / 256.0;
    for (double c : cells) chi2 += (c - expected) * (c - expected) / expected;
    return chi2;
  };
  const Purpose s = Purpose::kSample;
  EXPECT_LT(board([&](std::uint32_t i) {
              return std::pair(uniform({3, 0, i}, 0, s, 0), uniform({3, 0, i}, 0, s, 1));
            }),
            377.1)
      << "index";
  EXPECT_LT(board([&](std::uint32_t i) {
              return std::pair(uniform({3, 0, 0}, i, s, 0), uniform({3, 0, 0}, i + 1, s, 0));
            }),
            377.1)
      << "agent";
  EXPECT_LT(board([&](std::uint32_t i) {
              return std::pair(uniform({3, 0, i}, 5, s, 0), uniform({3, 0, i + 1}, 5, s, 0));
            }),
            377.1)
      << "step";
  EXPECT_LT(board([&](std::uint32_t i) {
              return std::pair(uniform({3, i, 0}, 5, s, 0), uniform({3, i + 1, 0}, 5, s, 0));
            }),
            377.1)
      << "replicate";
  EXPECT_LT(board([&](std::uint32_t i) {
              return std::pair(uniform({i, 0, 0}, 5, s, 0), uniform({i + 1ull, 0, 0}, 5, s, 0));
            }),
            377.1)
      << "seed";
  EXPECT_LT(
      board([&](std::uint32_t i) {
        return std::pair(uniform({3, 0, i}, 5, s, 0), uniform({3, 0, i}, 5, Purpose::kSystemA, 0));
      }),
      377.1)
      << "purpose";
}

TEST(StreamStatistics, ThePairOfAnIndexIsUncorrelated) {  // |r| > 5/sqrt(N): rate 6e-7
  double sum = 0;
  constexpr int kPairs = 1 << 14;
  for (int i = 0; i < kPairs; ++i) {
    const Key key{9, 0, static_cast<std::uint32_t>(i)};
    sum += normal(key, 1, Purpose::kSample, 4) * normal(key, 1, Purpose::kSample, 5);
  }
  EXPECT_LT(std::abs(sum / kPairs), 5 / std::sqrt(kPairs));
}

// ---- categorical ----

TEST(Categorical, TakesTheLeastStateWhoseSumExceedsU) {
  const std::vector<double> c = {0.25, 0.5, 1};
  EXPECT_EQ(categorical(c, 0x1p-53), 0);
  EXPECT_EQ(categorical(c, std::nextafter(0.25, 0)), 0);
  EXPECT_EQ(categorical(c, 0.25), 1);
  EXPECT_EQ(categorical(c, 0.5), 2);
  EXPECT_EQ(categorical(c, 1 - 0x1p-53), 2);
  EXPECT_EQ(categorical(std::vector<double>{1}, 0.99), 0);
}

TEST(Categorical, NeverTakesAStateWithoutProbability) {
  const std::vector<double> c = {0, 0.5, 0.5, 1, 1};  // states 1 and 3 only
  for (double u : {0x1p-53, 0.1, 0.4999, 0.5, 0.7, 1 - 0x1p-53}) {
    const int state = categorical(c, u);
    EXPECT_TRUE(state == 1 || state == 3) << u << " gives " << state;
  }
}

TEST(Categorical, ASumBelowOneStillGivesAState) {
  EXPECT_EQ(categorical(std::vector<double>{0.5, 1 - 1e-9}, 1 - 1e-12), 1);
}

// A file's mu may miss 1 by up to 1e-9, and then its last state may have no probability at all.
TEST(Categorical, ASumBelowOneNeverGivesAStateWithoutProbability) {
  EXPECT_EQ(categorical(std::vector<double>{0.5, 1 - 1e-9, 1 - 1e-9}, 1 - 1e-12), 1);
}

TEST(Categorical, Frequencies) {  // chi-square, 3 degrees of freedom: above 30.7 with rate 1e-6
  const std::vector<double> law = {0.1, 0.2, 0.3, 0.4};
  std::vector<double> c(4), seen(4);
  std::partial_sum(law.begin(), law.end(), c.begin());
  constexpr std::uint32_t kDraws = 1 << 15;
  for (std::uint32_t i = 0; i < kDraws; ++i)
    ++seen[static_cast<std::size_t>(categorical(c, uniform({4, 0, i}, 0, Purpose::kSample, 0)))];
  double chi2 = 0;
  for (std::size_t s = 0; s < 4; ++s)
    chi2 += std::pow(seen[s] - law[s] * kDraws, 2) / (law[s] * kDraws);
  EXPECT_LT(chi2, 30.7);
}

}  // namespace
}  // namespace affpcl
