// What the tests of problems share: a block's rows, seen lane by lane.
#pragma once

#include <gtest/gtest.h>

#include "affpcl/math/blocks.h"
#include "tests/algebra.h"

namespace affpcl {

struct BlockRows {  // rows x 64 numbers
  explicit BlockRows(int n) : rows(n), data(static_cast<std::size_t>(n) * kLanes) {}
  Out out() const { return {data.data(), rows}; }
  In in() const { return out(); }
  double operator()(int r, int l) const { return out().row(r)[l]; }
  Vector lane(int l) const {
    Vector v;
    for (int r = 0; r < rows; ++r) v.push_back(in().at(r, l));
    return v;
  }
  void set(int l, const Vector& v) const {
    for (int r = 0; r < rows; ++r) out().row(r)[l] = v[static_cast<std::size_t>(r)];
  }
  int rows;
  Buffer data;
};

inline In shared(const Vector& v) { return {v.data(), static_cast<int>(v.size()), 1}; }

// |got - want| is at most `relative` of 1 + |want|.
inline void expect_near(const Vector& got, const Vector& want, double relative) {
  ASSERT_EQ(got.size(), want.size());
  EXPECT_LE(norm(got - want), relative * (1 + norm(want)))
      << ::testing::PrintToString(got) << " instead of " << ::testing::PrintToString(want);
}

}  // namespace affpcl
