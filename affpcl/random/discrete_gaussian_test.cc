#include "affpcl/random/discrete_gaussian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "affpcl/random/secret_bits.h"
#include "affpcl/random/seeded_bits_test.h"

namespace affpcl {
namespace {

// Follows every sequence of coins up to a length, one after another.
class AllCoins final : public RandomBits {
 public:
  struct Out {};
  explicit AllCoins(std::size_t most) : most_(most) {}

  std::uint64_t take(int bits) override {
    std::uint64_t word = 0;
    for (int k = 0; k < bits; ++k) {
      if (used_ == path_.size()) {
        if (path_.size() == most_) throw Out{};
        path_.push_back(false);
      }
      word = word << 1 | static_cast<std::uint64_t>(path_[used_++] ? 1 : 0);
    }
    return word;
  }
  double probability() const { return std::ldexp(1.0, -static_cast<int>(used_)); }
  // To the next sequence; false: there is none.
  bool next() {
    while (!path_.empty() && path_.back()) path_.pop_back();
    used_ = 0;
    if (path_.empty()) return false;
    path_.back() = true;
    return true;
  }

 private:
  std::vector<bool> path_;
  std::size_t used_ = 0, most_;
};

// The probability of each result, and of needing more coins than were tried.
struct Outcomes {
  std::map<std::int64_t, double> of;
  double open = 0;
};
Outcomes all_outcomes(std::size_t coins, const std::function<std::int64_t(RandomBits&)>& draw) {
  Outcomes outcomes;
  AllCoins all(coins);
  do {
    try {
      const std::int64_t x = draw(all);
      outcomes.of[x] += all.probability();
    } catch (const AllCoins::Out&) {
      outcomes.open += std::ldexp(1.0, -static_cast<int>(coins));
    }
  } while (all.next());
  return outcomes;
}

TEST(DiscreteGaussian, CoinsOfProbabilityExpAreExact) {
  const std::pair<int, int> ratios[] = {{0, 1}, {1, 1}, {1, 2}, {3, 4}, {2, 3}, {3, 2}, {9, 4}};
  for (const auto& [over, under] : ratios) {
    const Outcomes found = all_outcomes(20, [&](RandomBits& bits) {
      return bernoulli_exp(static_cast<unsigned>(over), static_cast<unsigned>(under), bits) ? 1 : 0;
    });
    const double p = std::exp(-static_cast<double>(over) / under);
    const auto at = found.of.find(1);
    const double yes = at == found.of.end() ? 0 : at->second;
    EXPECT_LE(yes, p + 1e-12) << over << "/" << under;
    EXPECT_GE(yes + found.open, p - 1e-12) << over << "/" << under;
    EXPECT_LT(found.open, 0.05) << over << "/" << under;
  }
}

TEST(DiscreteGaussian, SmallWorldsAreExact) {
  const std::int64_t scale = 1;
  const Outcomes laplace =
      all_outcomes(20, [&](RandomBits& bits) { return discrete_laplace(scale, bits); });
  const Outcomes gaussian =
      all_outcomes(20, [&](RandomBits& bits) { return discrete_gaussian(1, bits); });
  EXPECT_LT(laplace.open, 0.06);
  EXPECT_LT(gaussian.open, 0.3);
  double all = 0;
  for (int x = -30; x <= 30; ++x) all += std::exp(-x * x / 2.0);
  for (std::int64_t x = -3; x <= 3; ++x) {
    const auto size = static_cast<double>(std::abs(x));
    const double a = std::tanh(0.5) * std::exp(-size), b = std::exp(-size * size / 2) / all;
    const auto of = [&](const Outcomes& o) { return o.of.contains(x) ? o.of.at(x) : 0; };
    EXPECT_LE(of(laplace), a + 1e-12);
    EXPECT_GE(of(laplace) + laplace.open, a - 1e-12);
    EXPECT_LE(of(gaussian), b + 1e-12);
    EXPECT_GE(of(gaussian) + gaussian.open, b - 1e-12);
    // Of what was decided, each result has about its share: coins run out for all alike.
    EXPECT_NEAR(of(gaussian) / (1 - gaussian.open), b, 0.05);
  }
}

// False alarms: .1 % each, over all sigmas .5 % (the limits are chi-square quantiles at .999).
TEST(DiscreteGaussian, FrequenciesAreThoseOfItsDensity) {
  SeededBits bits(7);
  const std::pair<std::int64_t, double> limits[] = {
      {1, 22.46}, {2, 32.91}, {5, 51.18}, {1000, 51.18}};
  for (const auto& [sigma, limit] : limits) {
    constexpr int kDraws = 40'000;
    const auto s = static_cast<double>(sigma);
    const int half = sigma == 1 ? 3 : sigma == 2 ? 6 : 12;  // cells each side of the middle one
    const std::int64_t cell = sigma <= 5 ? 1 : sigma / 5;
    std::vector<double> counts(static_cast<std::size_t>(2 * half + 1)), expected(counts.size());
    const auto place = [&](std::int64_t x) {
      const auto at = static_cast<std::int64_t>(std::floor(
          (static_cast<double>(x) + static_cast<double>(cell) / 2) / static_cast<double>(cell)));
      return static_cast<std::size_t>(std::clamp<std::int64_t>(at, -half, half) + half);
    };
    double all = 0;
    for (auto x = -12 * sigma; x <= 12 * sigma; ++x) {
      const double p = std::exp(-static_cast<double>(x) * static_cast<double>(x) / (2 * s * s));
      expected[place(x)] += p, all += p;
    }
    for (int k = 0; k < kDraws; ++k) ++counts[place(discrete_gaussian(sigma, bits))];
    double chi2 = 0;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      const double e = expected[c] / all * kDraws;
      ASSERT_GT(e, 4) << sigma << " cell " << c;
      chi2 += (counts[c] - e) * (counts[c] - e) / e;
    }
    EXPECT_LT(chi2, limit) << sigma;
  }
}

TEST(DiscreteGaussian, LargestSigmaHasItsVariance) {
  SeededBits bits(8);
  double squares = 0;
  constexpr int kDraws = 20'000;
  for (int k = 0; k < kDraws; ++k) {
    const double z =
        static_cast<double>(discrete_gaussian(kMostSigma, bits)) / static_cast<double>(kMostSigma);
    squares += z * z / kDraws;
  }
  EXPECT_NEAR(squares, 1, 3.3 * std::sqrt(2.0 / kDraws));  // false alarms: .1 %
}

TEST(DiscreteGaussian, SecretBitsAreFairAndNeverTheSame) {
  SecretBits a, b;
  int same = 0, ones = 0;
  for (int k = 0; k < 2000; ++k) {
    const std::uint64_t x = a.take(64), y = b.take(64);
    same += x == y ? 1 : 0;
    ones += std::popcount(x);
    EXPECT_LT(a.take(5), 32u);
  }
  EXPECT_EQ(same, 0);
  EXPECT_NEAR(ones / 128000.0, 0.5, 3.9 * 0.5 / std::sqrt(128000.0));  // false alarms: .01 %
}

}  // namespace
}  // namespace affpcl
