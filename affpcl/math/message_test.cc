#include "affpcl/math/message.h"

#include <gtest/gtest.h>

#include <limits>

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// rows x 64: lane l of row r holds r + l, lanes from `count` on hold NaN.
Buffer block(int rows, int count) {
  Buffer b(static_cast<std::size_t>(rows) * kLanes);
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < kLanes; ++l) b.data()[r * kLanes + l] = l < count ? r + l : kNaN;
  return b;
}

TEST(Message, AddsEachAgentsRowsToTheLeaf) {
  for (int count : {1, 2, 63, 64}) {
    SumLayout sum;
    sum.add("before", 1);
    const Field f = sum.add("f", 2);
    sum.add("after", 1);
    std::vector<double> leaf = {10, 20, 30, 40};
    const Buffer x = block(2, count);
    const Message message(leaf.data(), Lanes{128, count});
    message.add(f, In{x.data(), 2, kLanes});
    message.add(f, In{x.data(), 2, kLanes});
    const double s = count * (count - 1) / 2;
    EXPECT_EQ(leaf, (std::vector<double>{10, 20 + 2 * s, 30 + 2 * (s + count), 40})) << count;
    EXPECT_EQ(message.lanes().first, 128);
    EXPECT_EQ(message.lanes().count, count);
  }
}

TEST(Message, ASharedColumnCountsOncePerAgent) {
  std::vector<double> leaf(2);
  const double column[] = {3, -1};
  Message(leaf.data(), Lanes{0, 5}).add(Field{0, 2}, In{column, 2, 1});
  EXPECT_EQ(leaf, (std::vector<double>{15, -5}));
}

TEST(Message, AddsProducts) {
  const int count = 6;
  const Buffer psi = block(2, count), g = block(3, count);
  std::vector<double> leaf(8, 1.0);
  const Product M{1, 2, 3};
  const Message message(leaf.data(), Lanes{0, count});
  EXPECT_EQ(message.at(M), leaf.data() + 1);
  message.add(M, In{psi.data(), 2, kLanes}, In{g.data(), 3, kLanes});
  for (int p = 0; p < 2; ++p)
    for (int d = 0; d < 3; ++d) {
      double want = 1;
      for (int l = 0; l < count; ++l) want += (p + l) * (d + l);
      EXPECT_EQ(leaf[static_cast<std::size_t>(1 + p * 3 + d)], want);
    }
  EXPECT_EQ(leaf.front(), 1);
  EXPECT_EQ(leaf.back(), 1);
}

TEST(Message, AFieldWithoutRowsAddsNothing) {
  std::vector<double> leaf = {5};
  Message(leaf.data(), Lanes{0, 3}).add(Field{0, 0}, In{nullptr, 0, 1});
  EXPECT_EQ(leaf.front(), 5);
}

}  // namespace
}  // namespace affpcl
