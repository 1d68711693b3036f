#include "affpcl/math/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool aligned(const double* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; }

// A block whose entries are small whole numbers, so that arithmetic on them is exact.
struct Block {
  explicit Block(int r, int salt) : rows(r), data(static_cast<std::size_t>(r) * kLanes) {
    for (int i = 0; i < r; ++i)
      for (int l = 0; l < kLanes; ++l) out().row(i)[l] = (i * 7 + l * 3 + salt * 5) % 17 - 8;
  }
  Out out() const { return {data.data(), rows}; }
  In in() const { return out(); }
  int rows;
  Buffer data;
};

TEST(Layout, HandsOutRowsOneAfterTheOther) {
  Layout layout;
  const Field a = layout.add("x", 3), none = layout.add("nothing", 0), b = layout.add("gc", 2);
  EXPECT_EQ(a.at, 0);
  EXPECT_EQ(a.rows, 3);
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(b.at, 3);
  EXPECT_EQ(b.rows, 2);
  EXPECT_EQ(layout.rows(), 5);
  ASSERT_EQ(layout.fields().size(), 3u);
  EXPECT_EQ(layout.fields()[0].name, "x");
  EXPECT_EQ(layout.fields()[2].name, "gc");
  EXPECT_EQ(layout.fields()[2].field.at, 3);
}

TEST(Layout, SumsHoldRowsAndProducts) {
  SumLayout sum;
  const Field dx = sum.add("dx", 2);
  const Product M = sum.add_product("M", 3, 4);
  const Field after = sum.add("after", 1);
  EXPECT_EQ(dx.at, 0);
  EXPECT_EQ(M.at, 2);
  EXPECT_EQ(M.p, 3);
  EXPECT_EQ(M.d, 4);
  EXPECT_EQ(after.at, 14);
  EXPECT_EQ(sum.size(), 15);
}

TEST(Lanes, CoverAllAgentsOnce) {
  for (std::int64_t n : {1, 2, 63, 64, 65, 127, 128, 129, 1000}) {
    std::int64_t next = 0;
    for (std::int64_t b = 0; b < blocks_of(n); ++b) {
      const Lanes lanes = lanes_of(b, n);
      EXPECT_EQ(lanes.first, next);
      EXPECT_GE(lanes.count, 1);
      EXPECT_LE(lanes.count, kLanes);
      next += lanes.count;
    }
    EXPECT_EQ(next, n);
    EXPECT_EQ(leaves_of(n), (n + 255) / 256);
  }
}

TEST(Store, IsZeroAlignedAndInOrder) {
  for (std::int64_t n : {1, 64, 65, 300}) {
    const Store store(3, n);
    EXPECT_EQ(store.all().size(), static_cast<std::size_t>(blocks_of(n) * 3 * kLanes));
    for (double x : store.all()) ASSERT_EQ(x, 0);
    for (std::int64_t b = 0; b < blocks_of(n); ++b) {
      const Agents block = store.block(b);
      EXPECT_EQ(block.p, store.all().data() + b * 3 * kLanes);
      EXPECT_TRUE(aligned(block.p));
      EXPECT_EQ(block.lanes.first, b * kLanes);
      EXPECT_EQ(block.lanes.count, lanes_of(b, n).count);
    }
  }
}

TEST(Store, FieldsOfABlockAreItsRows) {
  const Store store(5, 70);
  const Agents block = store.block(1);
  const Out f = block[Field{2, 3}];
  EXPECT_EQ(f.rows, 3);
  EXPECT_EQ(f.row(0), block.p + 2 * kLanes);
  f.row(1)[4] = 9;
  EXPECT_EQ(store.all()[static_cast<std::size_t>((5 + 3) * kLanes + 4)], 9);
}

TEST(Store, WithoutRowsHoldsNothing) {
  const Store store(0, 70);
  EXPECT_TRUE(store.all().empty());
  EXPECT_EQ(store.block(1).lanes.count, 6);
  EXPECT_TRUE(Store().all().empty());
}

TEST(In, SharedColumnsLookTheSameFromEveryLane) {
  const double column[] = {1, 2, 3};
  const In shared{column, 3, 1};
  for (int l : {0, 1, 63}) EXPECT_EQ(shared.at(2, l), 3);
  EXPECT_EQ(shared.row(1), column + 1);
}

TEST(CentreAndMean, ReadTheirFields) {
  double numbers[] = {0, 1, 2, 3, 4, 5};
  const Field two{2, 2}, one{4, 1};
  const Product M{1, 2, 2};
  const Centre centre{numbers};
  EXPECT_EQ(centre[two].width, 1);
  EXPECT_EQ(centre[two].at(1, 17), 3);
  centre.mutate(two)[1] = 30;
  EXPECT_EQ(numbers[3], 30);
  EXPECT_EQ(centre.mutate(two).size(), 2u);
  const Mean mean{numbers};
  EXPECT_EQ(mean[one].at(0, 5), 4);
  EXPECT_EQ(mean[M], numbers + 1);
}

TEST(Scratch, PiecesAreAlignedAndApart) {
  Scratch scratch;
  std::vector<std::pair<double*, std::size_t>> pieces;
  for (std::size_t n : {1u, 64u, 7u, 640u, 20000u, 3u, 100000u, 16384u, 9u})
    pieces.emplace_back(scratch.numbers(n), n);
  pieces.emplace_back(scratch.rows(5).p, 5 * kLanes);
  EXPECT_EQ(scratch.rows(5).rows, 5);
  // Each piece is filled with its own number; none writes over another, even as the space grows.
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::fill_n(pieces[i].first, pieces[i].second, static_cast<double>(i + 1));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(aligned(pieces[i].first));
    for (std::size_t k = 0; k < pieces[i].second; ++k)
      ASSERT_EQ(pieces[i].first[k], static_cast<double>(i + 1));
  }
}

TEST(Scratch, GivesTheSameSpaceAgainAfterClear) {
  Scratch scratch;
  const auto ask = [&] {
    std::vector<double*> p;
    for (int rows : {3, 1, 200, 400, 5}) p.push_back(scratch.rows(rows).p);
    return p;
  };
  const std::vector<double*> first = ask();
  EXPECT_EQ(std::set<double*>(first.begin(), first.end()).size(), first.size());
  for (int round = 0; round < 3; ++round) {
    scratch.clear();
    EXPECT_EQ(ask(), first);
  }
}

// ---- row arithmetic: every combination of own and shared columns against the definition ----

// The first column of a block as a column that all agents share.
std::vector<double> column_of(const Block& block) {
  std::vector<double> column;
  for (int r = 0; r < block.rows; ++r) column.push_back(block.in().at(r, 0));
  return column;
}

class RowArithmetic : public ::testing::TestWithParam<std::pair<bool, bool>> {
 protected:
  static constexpr int kRows = 3;
  const Block a_{kRows, 1}, b_{kRows, 2};
  const std::vector<double> a1_ = column_of(a_), b1_ = column_of(b_);
  const In a = GetParam().first ? In{a1_.data(), kRows, 1} : a_.in();
  const In b = GetParam().second ? In{b1_.data(), kRows, 1} : b_.in();

  template <class F>
  static void expect(In got, F want) {
    for (int r = 0; r < got.rows; ++r)
      for (int l = 0; l < kLanes; ++l) ASSERT_EQ(got.at(r, l), want(r, l)) << r << ' ' << l;
  }
};

TEST_P(RowArithmetic, Copy) {
  const Block y(kRows, 9);
  copy(a, y.out());
  expect(y.in(), [&](int r, int l) { return a.at(r, l); });
}

TEST_P(RowArithmetic, Subtract) {
  const Block y(kRows, 9);
  subtract(a, b, y.out());
  expect(y.in(), [&](int r, int l) { return a.at(r, l) - b.at(r, l); });
}

TEST_P(RowArithmetic, AddScaled) {
  const Block y(kRows, 9), before(kRows, 9);
  add_scaled(y.out(), -3, a);
  expect(y.in(), [&](int r, int l) { return before.in().at(r, l) - 3 * a.at(r, l); });
}

TEST_P(RowArithmetic, Descend) {  // here the first input is the step: one row
  const Block y(kRows, 9), before(kRows, 9);
  const In step{a.p, 1, a.width};
  descend(y.out(), step, b);
  expect(y.in(), [&](int r, int l) { return before.in().at(r, l) - step.at(0, l) * b.at(r, l); });
}

TEST_P(RowArithmetic, DescendAlongTwo) {
  const Block y(kRows, 9), before(kRows, 9), h(kRows, 4);
  const In step{a.p, 1, a.width};
  descend(y.out(), step, b, h.in());
  expect(y.in(), [&](int r, int l) {
    return before.in().at(r, l) - step.at(0, l) * (b.at(r, l) + h.in().at(r, l));
  });
}

TEST_P(RowArithmetic, ScaleAndAdd) {
  const Block y(kRows, 9), factor(1, 3);
  scale(a, factor.in().p, b, y.out());
  expect(y.in(), [&](int r, int l) { return a.at(r, l) * factor.in().at(0, l) + b.at(r, l); });
}

TEST_P(RowArithmetic, SquaredDistance) {
  const Block y(1, 9);
  squared_distance(a, b, y.out());
  expect(y.in(), [&](int, int l) {
    double sum = 0;
    for (int r = 0; r < kRows; ++r) sum += (a.at(r, l) - b.at(r, l)) * (a.at(r, l) - b.at(r, l));
    return sum;
  });
}

TEST_P(RowArithmetic, Difference) {
  const Block y(kRows, 9), sum(kRows, 4), before(kRows, 4), along(1, 9), square(1, 9);
  difference(a, b, y.out(), sum.out(), along.out().p, square.out().p);
  const auto gap = [&](int r, int l) { return a.at(r, l) - b.at(r, l); };
  const auto sum_of = [&](auto term) {
    return [term](int, int l) {
      double total = 0;
      for (int r = 0; r < kRows; ++r) total += term(r, l);
      return total;
    };
  };
  expect(y.in(), gap);
  expect(sum.in(), [&](int r, int l) { return before.in().at(r, l) + gap(r, l); });
  expect(along.in(), sum_of([&](int r, int l) { return before.in().at(r, l) * gap(r, l); }));
  expect(square.in(),
         sum_of([&](int r, int l) { return before.in().at(r, l) * before.in().at(r, l); }));
}

INSTANTIATE_TEST_SUITE_P(OwnAndShared, RowArithmetic,
                         ::testing::Values(std::pair{false, false}, std::pair{false, true},
                                           std::pair{true, false}, std::pair{true, true}));

TEST(RowArithmeticOn, OneBlockInPlace) {
  const Block a(3, 1), b(3, 2);
  const Block left(3, 1), right(3, 2), doubled(3, 1);
  subtract(left.out(), b.in(), left.out());    // g <- g - b
  subtract(a.in(), right.out(), right.out());  // b <- g - b
  add_scaled(doubled.out(), 1, doubled.out());
  for (int r = 0; r < 3; ++r)
    for (int l = 0; l < kLanes; ++l) {
      const double x = a.in().at(r, l), y = b.in().at(r, l);
      ASSERT_EQ(left.in().at(r, l), x - y);
      ASSERT_EQ(right.in().at(r, l), x - y);
      ASSERT_EQ(doubled.in().at(r, l), 2 * x);
    }
  copy(a.in(), a.out());
  EXPECT_EQ(a.in().at(2, 5), Block(3, 1).in().at(2, 5));
}

TEST(RowArithmeticOn, FillingWritesEveryLaneAndNoMore) {
  const Buffer space(4 * kLanes);
  fill({space.data() + kLanes, 2}, 7);
  for (int i = 0; i < 4 * kLanes; ++i)
    EXPECT_EQ(space.data()[i], i >= kLanes && i < 3 * kLanes ? 7 : 0);
}

TEST(RowArithmeticOn, FewAgentsAndNoMore) {  // however many vectors these are
  const Block a(3, 1), b(3, 2), h(3, 4), before(3, 9);
  for (int lanes = kLaneStep; lanes <= kLanes; lanes += kLaneStep) {
    const Block left(3, 9), x(3, 9), e(1, 9);
    const auto only = [&](const Block& block) {
      return Out{block.out().p, block.out().rows, lanes};
    };
    subtract(a.in(), b.in(), only(left));
    descend(only(x), In{b.in().p, 1, kLanes}, a.in(), h.in());
    squared_distance(a.in(), b.in(), only(e));
    for (int l = 0; l < kLanes; ++l) {
      double square = 0;
      for (int r = 0; r < 3; ++r) {
        const double was = before.in().at(r, l), gap = a.in().at(r, l) - b.in().at(r, l);
        const double step = b.in().at(0, l) * (a.in().at(r, l) + h.in().at(r, l));
        ASSERT_EQ(left.in().at(r, l), l < lanes ? gap : was) << lanes;
        ASSERT_EQ(x.in().at(r, l), l < lanes ? was - step : was) << lanes;
        square += gap * gap;
      }
      ASSERT_EQ(e.in().at(0, l), l < lanes ? square : Block(1, 9).in().at(0, l)) << lanes;
    }
  }
}

TEST(RowArithmeticOn, PaddingStaysInItsLane) {
  const Block a(2, 1), b(2, 2), y(2, 3), e(1, 0);
  a.out().row(1)[63] = kNaN;
  subtract(a.in(), b.in(), y.out());
  add_scaled(y.out(), 2, a.in());
  descend(y.out(), In{b.in().p, 1, kLanes}, a.in());
  squared_distance(a.in(), b.in(), e.out());
  for (int l = 0; l < 63; ++l) {
    EXPECT_FALSE(std::isnan(y.in().at(0, l)) || std::isnan(y.in().at(1, l)));
    EXPECT_FALSE(std::isnan(e.in().at(0, l)));
  }
  EXPECT_TRUE(std::isnan(y.in().at(1, 63)));
  EXPECT_TRUE(std::isnan(e.in().at(0, 63)));
}

}  // namespace
}  // namespace affpcl
