// What the gaussian system does not show (gaussian_test.cc has the rest): means of one's own, and
// an observation that is only a part of the sample.
#include "affpcl/problem/normal_densities.h"

#include <gtest/gtest.h>

#include <cmath>

namespace affpcl {
namespace {

TEST(NormalDensities, LookAtTheObservedRowsAlone) {
  const std::int64_t n = 5;
  const int d = 2;
  const std::vector<double> means = {0, 0, 1, -0.5, -2, 0.3};  // of three environments
  const NormalDensities plain(n, d, means, {0, d}), shifted(n, d, means, {3, d});
  Buffer a(d * kLanes), b(6 * kLanes), g(kLanes), ra(kLanes), rb(kLanes);
  const Out s{a.data(), d}, wide{b.data(), 6}, one{g.data(), 1};
  fill(wide, std::nan(""));
  fill(one, 1);
  for (int r = 0; r < d; ++r)
    for (int l = 0; l < kLanes; ++l) s.row(r)[l] = wide.row(3 + r)[l] = std::sin(3.0 * r + l);
  Scratch scratch;
  const Lanes lanes{0, 5};
  plain.own(lanes, s, scratch, {ra.data(), 1});
  shifted.own(lanes, wide, scratch, {rb.data(), 1});
  std::vector<double> Ma(3), Mb(3);
  plain.accumulate(lanes, s, one, scratch, Ma.data());
  shifted.accumulate(lanes, wide, one, scratch, Mb.data());
  EXPECT_EQ(Ma, Mb);
  std::vector<double> sum(3);
  for (int l = 0; l < 5; ++l) {
    EXPECT_EQ(ra.data()[l], rb.data()[l]);
    double density[3], mixture = 0;
    for (int e = 0; e < 3; ++e) {
      double square = 0;
      for (int r = 0; r < d; ++r)
        square += std::pow(s.row(r)[l] - means[static_cast<std::size_t>(e * d + r)], 2);
      density[e] = std::exp(-0.5 * square);
      mixture += density[e] * (e < 2 ? 0.4 : 0.2);  // agents 0, 3 and 1, 4 and 2
    }
    EXPECT_NEAR(ra.data()[l], density[l % 3] / mixture, 1e-13);
    for (std::size_t e = 0; e < 3; ++e) sum[e] += density[e] / mixture;
  }
  for (std::size_t e = 0; e < 3; ++e) EXPECT_NEAR(Ma[e], sum[e], 1e-12);
}

TEST(NormalDensities, KnowTheirMeans) {
  const NormalDensities laws(70, 2, {0, 0, 3, 4}, {0, 2});
  EXPECT_EQ(laws.environments(), 2);
  EXPECT_EQ(laws.p(), 2);
  EXPECT_EQ(laws.farthest(), 25);
  EXPECT_EQ(laws.mean(1)[1], 4);
  EXPECT_EQ(laws.mean(Lanes{64, 6}).at(0, 1), 3);
  EXPECT_EQ(laws.mean(Lanes{64, 6}).at(0, 2), 0);
  EXPECT_NEAR(laws.tv(0, 1), std::erf(5 / std::sqrt(8.0)), 1e-15);
  EXPECT_EQ(laws.tv(0, 2), 0);
}

TEST(NormalDensities, EnvironmentsLieOnASphere) {
  const Key key{3, 1, 0};
  const NormalEnvironments sphere{.agents = 7, .dim = 3, .radius = 1.5};
  const NormalDensities laws(key, sphere, {0, 3});
  EXPECT_EQ(laws.environments(), 7);
  for (std::int64_t e = 0; e < 7; ++e) {
    const double* m = laws.mean(e);
    EXPECT_NEAR(std::hypot(m[0], m[1], m[2]), e == 0 ? 0 : 1.5, 1e-14);
  }
  EXPECT_EQ(NormalDensities(key, {.agents = 7, .distinct = 3, .dim = 3, .radius = 1}, {0, 3}).p(),
            3);
  EXPECT_EQ(NormalDensities(key, {.agents = 7, .distinct = 9, .dim = 3, .radius = 1}, {0, 3}).p(),
            7);
  EXPECT_EQ(NormalDensities(key, {.agents = 7, .dim = 3, .radius = 0}, {0, 3}).p(), 1);
}

}  // namespace
}  // namespace affpcl
