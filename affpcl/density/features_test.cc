#include "affpcl/density/features.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

TEST(Features, RefusesWhatCannotBe) {
  const Gaussian gaussian({.agents = 2}, 1, 0);
  FiniteSystem system = Tabular::generate({.agents = 2, .states = 2}, 3, 0);
  system.p = 1;
  system.psi = {1, std::numeric_limits<double>::quiet_NaN()};
  const Tabular spoilt(system, Tabular::Coe::kAuto);
  EXPECT_THROW(make_features({.kind = FeatureConfig::Kind::kOneHot}, gaussian), BadInput);
  EXPECT_THROW(make_features({.kind = FeatureConfig::Kind::kProblem}, gaussian), BadInput);
  EXPECT_THROW(make_features({.kind = FeatureConfig::Kind::kProblem}, spoilt), BadInput);
}

TEST(Features, BumpsAreSharesAndFourierHasTheConstant) {
  const Gaussian problem({.agents = 70, .dim = 3}, 1, 0);
  Buffer s(3 * kLanes), psi(20 * kLanes);
  problem.draw({{5, 0, 0}, {}}, {{0, kLanes}, nullptr}, {s.data(), 3});
  s.data()[0] = 1e3;  // far from every centre
  for (const char* kind : {"bumps", "fourier"}) {
    const auto features =
        make_features({.kind = value_of<FeatureConfig::Kind>(kind, "features"), .p = 20}, problem);
    ASSERT_EQ(features->p(), 20);
    (*features)(problem, {0, kLanes}, {s.data(), 3}, {psi.data(), 20});
    for (int l = 0; l < kLanes; ++l) {
      double sum = 0;
      for (int k = 0; k < 20; ++k) sum += psi.data()[k * kLanes + l];
      EXPECT_NEAR(std::string(kind) == "bumps" ? sum : psi.data()[l], 1, 1e-12);
    }
  }
}

}  // namespace
}  // namespace affpcl
