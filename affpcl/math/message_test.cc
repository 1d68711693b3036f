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
  EXPECT_EQ(message.at(M, 5), leaf.data() + 1);
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

// Agents that are absent hold anything, NaN too.
TEST(Message, AddsThosePresent) {
  const int count = 63;
  Buffer psi = block(2, count), g = block(3, count);
  const LaneSet present = LaneSet{1} << 2 | LaneSet{1} << 7;
  for (int l = 0; l < count; ++l)
    if (!has_lane(present, l))
      for (const Buffer* b : {&psi, &g})
        for (std::size_t r = 0; r < b->size() / kLanes; ++r) b->data()[r * kLanes + l] = kNaN;
  std::vector<double> sum(9);
  const Message message(sum.data(), Lanes{0, count}, present);
  EXPECT_TRUE(message.present(7));
  EXPECT_FALSE(message.present(6));
  const Product M{0, 2, 3};
  message.add(M, In{psi.data(), 2, kLanes}, In{g.data(), 3, kLanes});
  message.add(Field{6, 2}, In{psi.data(), 2, kLanes}, -1);
  const double column = 5;
  message.add(Field{8, 1}, In{&column, 1, 1});
  for (int p = 0; p < 2; ++p)
    for (int d = 0; d < 3; ++d)
      EXPECT_EQ(sum[static_cast<std::size_t>(p * 3 + d)], (p + 2) * (d + 2) + (p + 7) * (d + 7));
  EXPECT_EQ(sum[6], -9);
  EXPECT_EQ(sum[7], -11);
  EXPECT_EQ(sum[8], 10);
  int calls = 0;
  message.each(M, [&](LaneSet which, double* to) {
    ++calls;
    EXPECT_EQ(which, present);
    EXPECT_EQ(to, sum.data());
  });
  EXPECT_EQ(calls, 1);
}

TEST(Message, KeepsAgentsApart) {
  const int count = 6;
  const Buffer x = block(2, count);
  std::vector<double> apart(3 * 6);
  const LaneSet present = 0b10101;
  const Message message(apart.data(), Lanes{0, count}, present, 3);
  const Product M{2, 1, 1};
  message.add(Field{0, 2}, In{x.data(), 2, kLanes}, 2);
  message.add(M, In{x.data(), 1, kLanes}, In{x.data(), 1, kLanes});
  message.each(M, [&](LaneSet which, double* to) {
    EXPECT_EQ(count_lanes(which), 1);
    *to += 100;
  });
  for (int l = 0; l < count; ++l) {
    const std::vector<double> one(apart.begin() + l * 3, apart.begin() + (l + 1) * 3);
    const std::vector<double> want =
        l % 2 == 0 ? std::vector<double>{2.0 * l, 2.0 * (l + 1), l * l + 100.0}
                   : std::vector<double>(3);
    EXPECT_EQ(one, want) << l;
  }
}

}  // namespace
}  // namespace affpcl
