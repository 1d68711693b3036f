#include "affpcl/math/fixed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace affpcl {
namespace {

// Numbers of very different size and both signs.
std::vector<double> numbers(std::size_t count) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-70, 40);
  std::vector<double> all(count);
  for (double& x : all) x = std::ldexp(mantissa(random), exponent(random));
  return all;
}

Fixed sum_of(const std::vector<double>& all) {
  Fixed sum;
  for (double v : all) sum += to_fixed(v);
  return sum;
}

TEST(Fixed, NumbersOfOrdinarySizeAreExact) {
  for (double v : {0.0, 1.0, -1.0, 0.1, -0.1, 1e15, -1e15, 0x1p-12, 1.0 / 3, -0x1.fffffffffffffp51})
    EXPECT_EQ(to_double(to_fixed(v)), v) << v;
  for (double v : numbers(10000))
    if (std::abs(v) >= 0x1p-12) {
      EXPECT_EQ(to_double(to_fixed(v)), v) << v;
    }
}

TEST(Fixed, AddsManyAsOneByOneAndCountsWhatIsTooLarge) {
  std::vector<double> all = numbers(10000);
  for (double v : {0.0, -0.0, 0x1p-12, -0x1p-12, 0x1.fffffffffffffp-13, 0x1p-11, 1.0, -3.0, 0x1p51,
                   -0x1.fffffffffffffp51, 0x1p-1070})
    all.push_back(v);
  const std::size_t fit = all.size();
  for (double v : {0x1p52, -0x1p52, 1e300, HUGE_VAL, -HUGE_VAL, std::nan("")}) all.push_back(v);
  std::vector<Fixed> sums(all.size(), Fixed{~std::uint64_t{0}, 7});
  EXPECT_EQ(add_fixed(all, sums.data()), all.size() - fit);
  for (std::size_t k = 0; k < all.size(); ++k) {
    Fixed want{~std::uint64_t{0}, 7};
    if (k < fit) want += to_fixed(all[k]);
    ASSERT_EQ(sums[k], want) << all[k];
  }
}

TEST(Fixed, SmallNumbersAreRoundedToTheNearestUnit) {
  EXPECT_EQ(to_fixed(0x1p-64), (Fixed{1, 0}));
  EXPECT_EQ(to_fixed(0x1.8p-65), (Fixed{1, 0}));
  EXPECT_EQ(to_fixed(0x1p-66), (Fixed{0, 0}));
  EXPECT_EQ(to_fixed(-0x1p-64), (Fixed{~std::uint64_t{0}, ~std::uint64_t{0}}));
  for (double v : numbers(10000)) EXPECT_LE(std::abs(to_double(to_fixed(v)) - v), 0x1p-65) << v;
}

TEST(Fixed, WordsCarryAndBorrow) {
  const Fixed most{~std::uint64_t{0}, 0}, unit{1, 0};
  EXPECT_EQ(Fixed(most) += unit, (Fixed{0, 1}));
  EXPECT_EQ((Fixed{0, 1}) += -unit, most);
  EXPECT_EQ(-Fixed{}, Fixed{});
  EXPECT_EQ(-to_fixed(2.5), to_fixed(-2.5));
}

TEST(Fixed, SumsDoNotDependOnTheirOrderOrOnMasksThatCancel) {
  std::vector<double> all = numbers(5000);
  const Fixed sum = sum_of(all);
  std::mt19937_64 random(3);
  for (int k = 0; k < 10; ++k) {
    std::shuffle(all.begin(), all.end(), random);
    EXPECT_EQ(sum_of(all), sum);
  }
  Fixed left = sum;
  std::vector<Fixed> masks(100);
  for (Fixed& m : masks) left += m = {random(), random()};
  for (const Fixed& m : masks) left += -m;
  EXPECT_EQ(left, sum);
}

// Of numbers that are exact, the sum is the double nearest to the true one: here below 2^-53 of it.
TEST(Fixed, TheSumIsRoundedOnce) {
  EXPECT_EQ(to_double(sum_of({1e15, 0.25, -1e15})), 0.25);
  EXPECT_EQ(to_double(sum_of({1, 0x1p-53})), 1);                     // a tie goes to the even one
  EXPECT_EQ(to_double(sum_of({1, 0x1p-53, 0x1p-64})), 1 + 0x1p-52);  // above the tie
  EXPECT_EQ(to_double(sum_of({-1, -0x1p-53, -0x1p-64})), -1 - 0x1p-52);
  long double exact = 0;
  const std::vector<double> all = numbers(1000);
  for (double v : all) exact += v;
  EXPECT_NEAR(to_double(sum_of(all)) / static_cast<double>(exact), 1, 1e-15);
}

}  // namespace
}  // namespace affpcl
