// Every kernel on every instruction set against plain loops. Entries are small whole numbers, so
// that sums are exact in any order and "equal" means equal; exp alone needs a tolerance. Padding
// lanes hold NaN, which must stay where it is.
#include "affpcl/math/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace affpcl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kDims[] = {1, 2, 3, 5, 8, 20, 84};

double entry(int i, int j, int salt) { return (i * 7 + j * 11 + salt * 13 + i * j) % 19 - 9; }

Buffer block(int rows, int count, int salt) {
  Buffer b(static_cast<std::size_t>(rows) * kLanes);
  for (int r = 0; r < rows; ++r)
    for (int l = 0; l < kLanes; ++l)
      b.data()[r * kLanes + l] = l < count ? entry(r, l, salt) : kNaN;
  return b;
}

In in(const Buffer& b) { return {b.data(), static_cast<int>(b.size()) / kLanes, kLanes}; }
Out out(const Buffer& b) { return {b.data(), static_cast<int>(b.size()) / kLanes}; }

std::vector<double> matrix(int rows, int cols) {
  std::vector<double> A;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) A.push_back(entry(r, c, 3));
  return A;
}

class Kernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    use_instruction_set(GetParam());
    ASSERT_EQ(instruction_set(), GetParam());
  }
  void TearDown() override { use_instruction_set(""); }
};

TEST_P(Kernels, Matvec) {
  for (int rows : kDims)
    for (int cols : kDims) {
      const std::vector<double> A = matrix(rows, cols);
      const int count = 1 + (rows * 31 + cols * 17) % kLanes;
      const Buffer x = block(cols, count, 1);
      const Buffer y(static_cast<std::size_t>(rows) * kLanes);
      kernels::matvec(A.data(), rows, cols, in(x), out(y));
      for (int r = 0; r < rows; ++r)
        for (int l = 0; l < count; ++l) {
          double want = 0;
          for (int c = 0; c < cols; ++c)
            want += A[static_cast<std::size_t>(r * cols + c)] * in(x).at(c, l);
          ASSERT_EQ(out(y).row(r)[l], want) << rows << " x " << cols << " lane " << l;
        }
    }
}

TEST_P(Kernels, MatvecWithAnyNumberOfRows) {  // the register blocking takes four rows at a time
  for (int rows = 1; rows <= 13; ++rows) {
    const std::vector<double> A = matrix(rows, 3);
    const Buffer x = block(3, kLanes, 1), y(static_cast<std::size_t>(rows + 1) * kLanes);
    fill({y.data() + rows * kLanes, 1}, 77);
    kernels::matvec(A.data(), rows, 3, in(x), {y.data(), rows});
    for (int r = 0; r < rows; ++r)
      for (int l = 0; l < kLanes; ++l) {
        double want = 0;
        for (int c = 0; c < 3; ++c) want += entry(r, c, 3) * entry(c, l, 1);
        ASSERT_EQ(out(y).row(r)[l], want);
      }
    for (int l = 0; l < kLanes; ++l) ASSERT_EQ(out(y).row(rows)[l], 77);  // nothing beyond
  }
}

TEST_P(Kernels, RankOne) {
  for (int d : kDims)
    for (int count = 1; count <= kLanes; count += 7) {
      const Buffer s = block(d, count, 1), own = block(d, count, 2);
      std::vector<double> shared;
      for (int r = 0; r < d; ++r) shared.push_back(entry(r, 0, 2));
      for (const In& y : {in(own), In{shared.data(), d, 1}})
        for (const bool in_place : {false, true}) {
          const Buffer result(static_cast<std::size_t>(d) * kLanes);
          if (in_place) copy(y, out(result));
          kernels::rank_one(in(s), in_place ? in(result) : y, 0.5, out(result));
          for (int l = 0; l < count; ++l) {
            double dot = 0;
            for (int r = 0; r < d; ++r) dot += in(s).at(r, l) * y.at(r, l);
            for (int r = 0; r < d; ++r)
              ASSERT_EQ(out(result).row(r)[l], y.at(r, l) + 0.5 * in(s).at(r, l) * dot)
                  << "d " << d << " lane " << l << " width " << y.width;
          }
        }
    }
}

TEST_P(Kernels, RankOneLessB) {
  for (int rows : kDims) {
    const int count = 1 + rows * 31 % kLanes;
    const Buffer s = block(rows, count, 1), y = block(rows, count, 2), b = block(rows, count, 4);
    const Buffer whole(y.size()), less(y.size());
    for (const In column : {in(y), In{y.data(), rows, 1}}) {
      kernels::rank_one(in(s), column, 0.5, out(whole));
      kernels::rank_one(in(s), column, 0.5, in(b), out(less));
      for (int r = 0; r < rows && column.width == kLanes; ++r)
        for (int l = 0; l < count; ++l)
          ASSERT_EQ(in(less).at(r, l), in(whole).at(r, l) - in(b).at(r, l));
    }
  }
}

TEST_P(Kernels, AtCentreIsItsThreeParts) {
  for (int rows : kDims) {
    const int count = 1 + rows * 17 % kLanes;
    const Buffer s = block(rows, count, 1), b = block(rows, count, 4);
    const std::vector<double> y = matrix(2, rows);
    const double *one = y.data(), *two = y.data() + rows;
    const Buffer g(b.size()), gx(b.size()), gtheta(b.size()), u(b.size()), v(b.size());
    kernels::at_centre(in(s), in(b), {one, 0.5}, {two, 2}, out(g), out(gx), out(gtheta));
    kernels::rank_one(in(s), {one, rows, 1}, 0.5, out(u));
    kernels::rank_one(in(s), {two, rows, 1}, 2, out(v));
    for (int r = 0; r < rows; ++r)
      for (int l = 0; l < count; ++l) {
        ASSERT_EQ(in(g).at(r, l), in(u).at(r, l) - in(v).at(r, l));
        ASSERT_EQ(in(gx).at(r, l), in(u).at(r, l) - in(b).at(r, l));
        ASSERT_EQ(in(gtheta).at(r, l), in(v).at(r, l) - in(b).at(r, l));
      }
  }
}

TEST_P(Kernels, LaneSum) {
  for (int count = 1; count <= kLanes; ++count) {
    const Buffer x = block(1, count, 5);
    double want = 0;
    for (int l = 0; l < count; ++l) want += x.data()[l];
    ASSERT_EQ(kernels::lane_sum(x.data(), count), want) << count;
  }
}

TEST_P(Kernels, AddProduct) {
  for (int d : kDims)
    for (int p = 1; p <= 9; ++p)
      for (int count = 1; count <= kLanes; count += d > 8 ? 9 : 1) {
        const Buffer psi = block(p, count, 1), g = block(d, count, 2);
        std::vector<double> M(static_cast<std::size_t>(p * d + 1),
                              1.0);  // it adds; the last is a fence
        kernels::add_product(in(psi), in(g), count, M.data());
        for (int e = 0; e < p; ++e)
          for (int r = 0; r < d; ++r) {
            double want = 1;
            for (int l = 0; l < count; ++l) want += in(psi).at(e, l) * in(g).at(r, l);
            ASSERT_EQ(M[static_cast<std::size_t>(e * d + r)], want)
                << "p " << p << " d " << d << " count " << count;
          }
        ASSERT_EQ(M.back(), 1);
      }
}

TEST_P(Kernels, AddSquare) {
  for (int p : {1, 2, 3, 4, 5, 7, 8, 9, 32})
    for (int count = 1; count <= kLanes; count += 3) {
      const Buffer psi = block(p, count, 1);
      std::vector<double> M(static_cast<std::size_t>(p * p + 1), 1.0);
      kernels::add_square(in(psi), count, M.data());
      for (int e = 0; e < p; ++e)
        for (int r = 0; r < p; ++r) {
          double want = 1;
          for (int l = 0; l < count; ++l) want += in(psi).at(e, l) * in(psi).at(r, l);
          ASSERT_EQ(M[static_cast<std::size_t>(e * p + r)], want) << p << ": " << e << ", " << r;
        }
      ASSERT_EQ(M.back(), 1);
    }
}

TEST_P(Kernels, Quadratic) {
  for (int n : {1, 2, 3, 4, 5, 7, 8, 9, 32})
    for (int count = 1; count <= kLanes; count += 3) {
      std::vector<double> A;
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < n; ++c) A.push_back(entry(std::min(r, c), std::max(r, c), 3));
      const Buffer x = block(n, count, 1), y(kLanes);
      kernels::quadratic(A.data(), in(x), {y.data(), 1, lanes_to_write(count)});
      for (int l = 0; l < count; ++l) {
        double want = 0;
        for (int r = 0; r < n; ++r)
          for (int c = 0; c < n; ++c)
            want += in(x).at(r, l) * A[static_cast<std::size_t>(r * n + c)] * in(x).at(c, l);
        ASSERT_EQ(y.data()[l], want) << n << " lane " << l;
      }
    }
}

TEST_P(Kernels, AddProductOfSharedColumns) {
  const double psi_column[] = {2, -1}, g_column[] = {3, 5, 7};
  for (int count : {1, 40, 64}) {
    const Buffer psi = block(2, count, 1), g = block(3, count, 2);
    for (const In& a : {in(psi), In{psi_column, 2, 1}})
      for (const In& b : {in(g), In{g_column, 3, 1}}) {
        std::vector<double> M(6);
        kernels::add_product(a, b, count, M.data());
        for (int e = 0; e < 2; ++e)
          for (int r = 0; r < 3; ++r) {
            double want = 0;
            for (int l = 0; l < count; ++l) want += a.at(e, l) * b.at(r, l);
            ASSERT_EQ(M[static_cast<std::size_t>(e * 3 + r)], want) << count;
          }
      }
  }
}

// The space that add_product keeps for a ragged block grows and shrinks between calls.
TEST_P(Kernels, AddProductAfterALargerOne) {
  for (int d : {84, 2, 20}) {
    const Buffer psi = block(3, 10, 1), g = block(d, 10, 2);
    std::vector<double> M(static_cast<std::size_t>(3 * d));
    kernels::add_product(in(psi), in(g), 10, M.data());
    double want = 0;
    for (int l = 0; l < 10; ++l) want += in(psi).at(2, l) * in(g).at(d - 1, l);
    EXPECT_EQ(M.back(), want);
  }
}

TEST_P(Kernels, MatvecOfOneColumn) {
  for (int rows : kDims)
    for (int cols : kDims) {
      const std::vector<double> A = matrix(rows, cols);
      std::vector<double> x, y(static_cast<std::size_t>(rows) + 1, 77);
      for (int c = 0; c < cols; ++c) x.push_back(entry(c, 0, 1));
      kernels::matvec(A.data(), rows, cols, x.data(), y.data());
      for (int r = 0; r < rows; ++r) {
        double want = 0;
        for (int c = 0; c < cols; ++c) want += entry(r, c, 3) * x[static_cast<std::size_t>(c)];
        ASSERT_EQ(y[static_cast<std::size_t>(r)], want) << rows << " x " << cols;
      }
      ASSERT_EQ(y.back(), 77);
    }
}

TEST_P(Kernels, AddLaneSums) {
  for (int rows = 1; rows <= 9; ++rows)  // four at a time
    for (int count = 1; count <= kLanes; count += 5) {
      const Buffer x = block(rows, count, 5);
      std::vector<double> sums(static_cast<std::size_t>(rows + 1), 2.0);
      kernels::add_lane_sums(in(x), count, 1, sums.data());
      for (int r = 0; r < rows; ++r)
        ASSERT_EQ(sums[static_cast<std::size_t>(r)], 2 + kernels::lane_sum(in(x).row(r), count));
      kernels::add_lane_sums(in(x), count, -0.5, sums.data());
      for (int r = 0; r < rows; ++r)
        ASSERT_EQ(sums[static_cast<std::size_t>(r)],
                  2 + 0.5 * kernels::lane_sum(in(x).row(r), count));
      ASSERT_EQ(sums.back(), 2);
    }
}

TEST_P(Kernels, Add) {
  for (std::size_t count = 0; count <= 37; ++count) {
    std::vector<double> x(count + 1), y(count + 1, 77);
    for (std::size_t k = 0; k <= count; ++k) x[k] = static_cast<double>(k) - 3;
    kernels::add(x.data(), count, y.data());
    for (std::size_t k = 0; k < count; ++k) ASSERT_EQ(y[k], 77 + x[k]);
    ASSERT_EQ(y[count], 77);
  }
}

TEST_P(Kernels, Multiply) {
  for (std::size_t count = 0; count <= 37; ++count) {
    std::vector<double> x(count + 1), y(count + 1, 77);
    for (std::size_t k = 0; k < count; ++k) x[k] = entry(static_cast<int>(k), 1, 2);
    kernels::multiply(x.data(), 0.5, count, y.data());
    for (std::size_t k = 0; k < count; ++k) ASSERT_EQ(y[k], 0.5 * x[k]);
    ASSERT_EQ(y[count], 77);
  }
}

TEST_P(Kernels, Softmax) {  // shares of exponentials, from far below what exp can show to far above
  for (int p : {1, 2, 7})
    for (const double size : {1e-9, 1.0, 40.0, 1e4, 1e300}) {
      const Buffer rows(static_cast<std::size_t>(p) * kLanes);
      std::vector<double> bias;
      for (int e = 0; e < p; ++e) {
        bias.push_back(-0.25 * e);
        for (int l = 0; l < kLanes; ++l)
          out(rows).row(e)[l] = l == kLanes - 1 ? kNaN : size * entry(e, l, 1) / 9;
      }
      const Buffer before(static_cast<std::size_t>(p) * kLanes);
      copy(in(rows), out(before));
      kernels::softmax(out(rows), bias.data());
      for (int l = 0; l < kLanes - 1; ++l) {
        double most = -HUGE_VAL, sum = 0;
        const auto logit = [&](int e) {
          return in(before).at(e, l) + bias[static_cast<std::size_t>(e)];
        };
        for (int e = 0; e < p; ++e) most = std::max(most, logit(e));
        for (int e = 0; e < p; ++e) sum += std::exp(logit(e) - most);
        for (int e = 0; e < p; ++e) {
          const double want = std::exp(logit(e) - most) / sum;
          ASSERT_NEAR(in(rows).at(e, l), want, 1e-15 * p * want + 1e-300) << "size " << size;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(AllInstructionSets, Kernels,
                         ::testing::ValuesIn(available_instruction_sets()),
                         [](const auto& set) { return set.param; });

TEST(InstructionSet, TheBestIsTheDefault) {
  const std::vector<std::string> all = available_instruction_sets();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(instruction_set(), all.front());
  use_instruction_set(all.back());
  EXPECT_EQ(instruction_set(), all.back());
  EXPECT_EQ(available_instruction_sets(), all);
  EXPECT_EQ(instruction_set(), all.back());  // asking changes nothing
  use_instruction_set("");
  EXPECT_EQ(instruction_set(), all.front());
}

}  // namespace
}  // namespace affpcl
