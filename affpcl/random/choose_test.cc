#include "affpcl/random/choose.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <vector>

namespace affpcl {
namespace {

std::vector<std::uint64_t> chosen(std::uint32_t round, std::int64_t n, std::int64_t m,
                                  std::uint64_t seed = 1) {
  std::vector<std::uint64_t> bits(static_cast<std::size_t>((n + 63) / 64), ~std::uint64_t{0});
  choose({.seed = seed, .replicate = 0, .step = round}, Purpose::kPresence, n, m, bits);
  return bits;
}

TEST(Choose, TakesExactlySoMany) {
  for (const std::int64_t n : {1, 2, 63, 64, 65, 1000})
    for (const std::int64_t m : {std::int64_t{1}, n / 3 + 1, n}) {
      int count = 0;
      const std::vector<std::uint64_t> bits = chosen(3, n, m);
      for (const std::uint64_t word : bits) count += std::popcount(word);
      EXPECT_EQ(count, m) << n;
      if (n % 64 != 0) {
        EXPECT_EQ(bits.back() >> n % 64, 0) << n;
      }
    }
}

TEST(Choose, IsAFunctionOfItsKey) {
  EXPECT_EQ(chosen(3, 100, 30), chosen(3, 100, 30));
  EXPECT_NE(chosen(3, 100, 30), chosen(4, 100, 30));
  EXPECT_NE(chosen(3, 100, 30), chosen(3, 100, 30, 2));
}

// Chi-square over all sets: about one seed in 1e5 would fail each of these.
TEST(Choose, EverySetIsAsLikely) {
  const struct {
    std::int64_t m;
    double sets, limit;  // the upper 1e-5 point for sets - 1 degrees of freedom
  } cases[] = {{1, 6, 30.9}, {2, 15, 48.7}, {3, 20, 57.4}, {5, 6, 30.9}};
  for (const auto& [m, sets, limit] : cases) {
    constexpr std::uint32_t kRounds = 20000;
    std::map<std::uint64_t, double> counts;
    for (std::uint32_t r = 0; r < kRounds; ++r) counts[chosen(r, 6, m)[0]] += 1;
    EXPECT_EQ(static_cast<double>(counts.size()), sets);
    double chi2 = 0;
    const double expected = kRounds / sets;
    for (const auto& [set, count] : counts)
      chi2 += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi2, limit) << m << " of 6";
  }
}

}  // namespace
}  // namespace affpcl
