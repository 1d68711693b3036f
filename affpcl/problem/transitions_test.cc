#include "affpcl/problem/transitions.h"

#include "affpcl/problem/apply_test.h"

#include <gtest/gtest.h>

#include <vector>

namespace affpcl {
namespace {

// One transition by hand for every agent: phi = (2, -1), gamma phi' = (.5, 1), c = (1, 3, -2),
// r = 4, cell 7; agent 1 ends its episode there.
class Hand final : public Transitions {
 public:
  Hand() { set_shape(2, 3); }
  Shape shape() const override { return {.agents = 2, .d = 2, .k = 3}; }
  void draw(const Draw&, Agents world, Out s) const override {
    const double rows[] = {2, -1, 0.5, 1, 1, 3, -2, 4, 7};
    for (int l = 0; l < world.lanes.count; ++l)
      for (int r = 0; r < s.rows; ++r) s.row(r)[l] = l == 1 && (r == 2 || r == 3) ? 0 : rows[r];
  }
};

struct Rows {
  explicit Rows(int n) : data(static_cast<std::size_t>(n) * kLanes), rows(n) {}
  Rows(int n, const std::vector<double>& lane0, const std::vector<double>& lane1) : Rows(n) {
    for (int r = 0; r < n; ++r) {
      out().row(r)[0] = lane0[static_cast<std::size_t>(r)];
      out().row(r)[1] = lane1[static_cast<std::size_t>(r)];
    }
  }
  Out out() const { return {data.data(), rows}; }
  std::vector<double> lane(int l) const {
    std::vector<double> v;
    for (int r = 0; r < rows; ++r) v.push_back(out().row(r)[l]);
    return v;
  }
  Buffer data;
  int rows;
};

using Numbers = std::vector<double>;
constexpr Lanes kTwo{0, 2};

class TransitionsByHand : public ::testing::Test {
 protected:
  TransitionsByHand() {
    Layout world, sample;
    problem.declare(world, sample);
    EXPECT_EQ(world.rows(), 0);
    EXPECT_EQ(sample.rows(), 9);
    problem.draw({}, {kTwo, nullptr}, s.out());
  }
  Hand problem;
  Rows s{9};
};

TEST_F(TransitionsByHand, MatrixOfTheBellmanEquation) {
  const Rows x(2, {1, 3}, {1, 3}), Ax(2), shared(2);
  apply(problem, kTwo, s.out(), x.out(), Ax.out());
  EXPECT_EQ(Ax.lane(0), (Numbers{-9, 4.5}));  // phi (phi'x - next'x), phi'x = -1, next'x = 3.5
  EXPECT_EQ(Ax.lane(1), (Numbers{-2, 1}));    // at the end nothing follows
  const double column[] = {1, 3};
  apply(problem, kTwo, s.out(), {column, 2, 1}, shared.out());
  EXPECT_EQ(shared.lane(0), Ax.lane(0));
  EXPECT_EQ(shared.lane(1), Ax.lane(1));
}

TEST_F(TransitionsByHand, ObjectiveAndItsEstimates) {
  const Rows b(2), bhat(2), g(3);
  const double theta[] = {1, 2, 1};  // c' theta = 5
  problem.objective(kTwo, s.out(), b.out());
  EXPECT_EQ(b.lane(0), (Numbers{8, -4}));
  Scratch scratch;
  problem.Phi(kTwo, s.out(), {theta, 3, 1}, scratch, bhat.out());
  EXPECT_EQ(bhat.lane(1), (Numbers{10, -5}));
  problem.coe(kTwo, s.out(), b.out(), {theta, 3, 1}, bhat.out(), g.out());
  EXPECT_EQ(g.lane(0), (Numbers{1, 3, -2}));  // c (c' theta - r)
}

TEST_F(TransitionsByHand, RewardsByCell) {
  const Rows cell(1), value(1), bhat(2);
  problem.cell(kTwo, s.out(), cell.out());
  EXPECT_EQ(cell.lane(0), Numbers{7});
  problem.table_value(kTwo, s.out(), {}, value.out());
  EXPECT_EQ(value.lane(1), Numbers{4});
  const Rows mean(1, {3}, {5});
  problem.table_lift(kTwo, s.out(), mean.out(), bhat.out());
  EXPECT_EQ(bhat.lane(0), (Numbers{6, -3}));
  EXPECT_EQ(bhat.lane(1), (Numbers{10, -5}));
}

}  // namespace
}  // namespace affpcl
