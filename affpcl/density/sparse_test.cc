#include "affpcl/density/sparse.h"

#include <gtest/gtest.h>

#include "affpcl/density/enumerate_test.h"

namespace affpcl::enumeration {
namespace {

TEST(TheoryDensity, SparseRatiosAreOffByTheirError) {
  expect_bias_identity({{"ratio", "sparse"}, {"threshold", 0.3}});
  expect_bias_identity({{"ratio", "sparse"}, {"threshold", 0.3}, {"penalty", "l1"}});
}

// Agents 1 and 2 differ from the others in two states of 20 each: thresholds and coupled pairs find
// that with a fraction of the error of plain counts. Fixed seed; the bounds are ours, not a
// theorem's.
TEST(StatisticsDensity, StructureHelps) {
  FiniteSystem finite = Tabular::generate(
      {.agents = 4, .dim = 2, .states = 20, .delta_env = 0, .delta_obj = 0}, 2, 0);
  finite.mu.assign(80, 0.05);
  for (const std::size_t i : {1, 2}) {  // one state up and one down
    finite.mu[21 * i] = 0.09;
    finite.mu[21 * i + 5] = 0.01;
  }
  const Tabular system(finite, Tabular::Coe::kAuto);
  const auto of = [&](const Given& given) { return risk(system, given, {1000}, 40).front(); };
  const double plain = of({{"ratio", "counts"}, {"shrink", "none"}});
  EXPECT_LT(of({{"ratio", "counts"}}), plain);
  EXPECT_LT(of({{"ratio", "sparse"}}), 0.5 * plain);
  EXPECT_LT(of({{"ratio", "coupled"}}), 0.3 * plain);
}

}  // namespace
}  // namespace affpcl::enumeration
