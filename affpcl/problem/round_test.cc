#include "affpcl/problem/round.h"

#include <gtest/gtest.h>

#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/gaussian.h"

namespace affpcl {
namespace {

constexpr int kD = 3, kSteps = 2, kBatch = 3;

TEST(Batch, FindsTheSampleOfEachStep) {
  const Buffer space(static_cast<std::size_t>(kSteps * kBatch * 2 * kD) * kLanes);
  const Batch batch{space.data(), kD, kD, kSteps, kBatch};
  for (int k = 0; k < kSteps; ++k)
    for (int m = 0; m < kBatch; ++m) {
      EXPECT_EQ(batch.s(k, m).p, space.data() + (k * kBatch + m) * 2 * kD * kLanes);
      EXPECT_EQ(batch.b(k, m).p, batch.s(k, m).p + kD * kLanes);
      EXPECT_EQ(batch.s(k, m).rows, kD);
      EXPECT_EQ(batch.b(k, m).rows, kD);
    }
}

TEST(Direction, IsTheMeanOverTheStepsBatch) {
  const Gaussian problem({.agents = 5, .dim = kD}, 1, 0);
  const Lanes lanes{0, 5};
  for (int size : {1, kBatch}) {
    const Buffer space(static_cast<std::size_t>(kSteps * size * 2 * kD) * kLanes);
    const Batch batch{space.data(), kD, kD, kSteps, size, kSteps, size};
    for (int k = 0; k < kSteps; ++k)
      for (int m = 0; m < size; ++m) {
        const Out s{const_cast<double*>(batch.s(k, m).p), kD};
        problem.draw({{1, 0, static_cast<std::uint32_t>(k * size + m)}, {}}, {lanes, nullptr}, s);
        problem.objective(lanes, s, {const_cast<double*>(batch.b(k, m).p), kD});
      }
    const double x[] = {0.5, -1, 2};
    Scratch scratch;
    const StepSizes step;
    const Block block{{problem, step, 0, kSteps, scratch}, batch, {lanes, nullptr}, {}};
    const Buffer got(kD * kLanes), one(kD * kLanes);
    for (int k = 0; k < kSteps; ++k) {
      direction(block, k, In{x, kD, 1}, {got.data(), kD});
      for (int l = 0; l < 5; ++l)
        for (int r = 0; r < kD; ++r) {
          double want = 0;
          for (int m = 0; m < size; ++m) {
            apply(problem, lanes, batch.s(k, m), In{x, kD, 1}, {one.data(), kD});
            want += (one.data()[r * kLanes + l] - batch.b(k, m).at(r, l)) / size;
          }
          EXPECT_NEAR(got.data()[r * kLanes + l], want, 1e-12 * (1 + std::abs(want)));
        }
    }
  }
}

}  // namespace
}  // namespace affpcl
