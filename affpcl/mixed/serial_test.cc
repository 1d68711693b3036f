#include "affpcl/mixed/serial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/math/dense.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

// Errors of an AR(1) process instead of independent ones, the same coefficients for all agents.
Frame rows_in_time(std::size_t agents, std::size_t rows, double correlation, std::uint64_t seed) {
  Frame f = TableWorld{.agents = agents,
                       .rows = rows,
                       .spread = 0,
                       .noise = [](std::size_t) { return 0.0; },
                       .seed = seed}
                .frame();
  f.held_out.how = Holdout::kForward;
  for (std::size_t i = 0; i < agents; ++i) {
    double e = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const double fresh =
          normal({.seed = seed, .replicate = 1, .step = static_cast<std::uint32_t>(r)},
                 static_cast<std::int64_t>(i), Purpose::kSample, 0);
      e = r == 0 ? fresh : correlation * e + std::sqrt(1 - correlation * correlation) * fresh;
      f.Y[i * rows + r] += e;
    }
  }
  return f;
}

SerialTest test_of(const Frame& f, Team& team) {
  return test_serial(
      f, 0, [&](std::size_t) { return std::vector<double>(f.d, 1.0); }, team);
}

TEST(Serial, TheTestHasTheMomentsOfARandomOrder) {
  const std::unique_ptr<Team> team = serial_team();
  Frame f = TableWorld{.agents = 1, .rows = 5, .columns = 0, .spread = 0}.frame();
  f.Y = {0.3, -1.2, 2.5, 0.1, 0.9};
  for (double& y : f.Y) y += 1;
  std::vector<double> z;
  double correlation = 0;
  std::sort(f.places.begin(), f.places.end());
  do {
    const SerialTest test = test_of(f, *team);
    z.push_back(test.z);
    correlation += test.correlation;
  } while (std::next_permutation(f.places.begin(), f.places.end()));
  ASSERT_EQ(z.size(), 120u);
  EXPECT_NEAR(sum(z) / 120, 0, 1e-12);
  EXPECT_NEAR(squared_norm(z) / 120, 1, 1e-12);
  EXPECT_NEAR(correlation, 0, 1e-10);
}

TEST(Serial, WithoutCorrelationOneTableInAHundredRaisesAnAlarm) {
  const std::unique_ptr<Team> team = serial_team();
  int alarms = 0, tables = 1000;
  for (int seed = 1; seed <= tables; ++seed)
    alarms += test_of(rows_in_time(8, 10, 0, static_cast<std::uint64_t>(seed)), *team).found();
  EXPECT_LE(alarms, 21);  // binomial(1000, .01) is larger once in two thousand times
  EXPECT_GE(alarms, 1);
}

TEST(Serial, ItFindsACorrelation) {
  const std::unique_ptr<Team> team = serial_team();
  const Frame f = rows_in_time(30, 20, 0.6, 3);
  const SerialTest test = test_of(f, *team);
  EXPECT_TRUE(test.found());
  EXPECT_NEAR(test.correlation, 0.6, 0.15);
  EXPECT_NEAR(most_evident_correlation(f, 0, {}, *team), 0.6, 0.1);
  EXPECT_EQ(most_evident_correlation(rows_in_time(30, 20, 0, 3), 0, {}, *team), 0);
}

TEST(Serial, MomentsInTimeAreThoseOfTheInverseCorrelations) {
  const std::unique_ptr<Team> team = serial_team();
  const std::size_t n = 7;
  Frame f = rows_in_time(2, n, 0.5, 5);
  std::reverse(f.places.begin() + n, f.places.end());  // the second agent's rows lie backwards
  const double r = 0.7;
  const Moments m = moments_in_time(f, 0, kAllRows, r, *team);
  Matrix R(n, n);
  for (std::size_t s = 0; s < n; ++s)
    for (std::size_t t = 0; t < n; ++t)
      R(s, t) = std::pow(r, std::abs(static_cast<double>(s) - static_cast<double>(t)));
  const Matrix inverse_R = inverse(R);
  for (std::size_t i = 0; i < 2; ++i) {
    const Matrix X = f.block(i * n, n);
    const Vector y(f.Y.begin() + static_cast<std::ptrdiff_t>(i * n),
                   f.Y.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
    const Matrix A = multiply(X, multiply(inverse_R, transposed(X)));
    const Vector b = multiply(X, multiply(inverse_R, y));
    for (std::size_t j = 0; j < f.d * f.d; ++j)
      EXPECT_NEAR(m.A[i * f.d * f.d + j], A.all()[j], 1e-9);
    for (std::size_t j = 0; j < f.d; ++j) EXPECT_NEAR(m.b[i * f.d + j], b[j], 1e-9);
    EXPECT_NEAR(m.yy[i], dot(y, multiply(inverse_R, y)), 1e-9);
  }
  EXPECT_NEAR(log_whitening(m, r, *team), -Cholesky(R).log_determinant(), 1e-9);
}

}  // namespace
}  // namespace affpcl
