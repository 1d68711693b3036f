#include "affpcl/affinity/forecast.h"

#include <gtest/gtest.h>

#include "affpcl/math/statistics.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr std::size_t kDim = 5;

std::vector<double> identity(double scale) {
  std::vector<double> I(kDim * kDim);
  for (std::size_t j = 0; j < kDim; ++j) I[j * kDim + j] = scale;
  return I;
}

// Independent standard normal columns, so that E z z' = I and the error is |x - truth|^2.
Moments draw(std::size_t rows, const std::vector<double>& truth, double noise,
             std::uint32_t which) {
  Moments m(1, kDim);
  std::vector<double> z(kDim, 1.0);
  for (std::size_t r = 0; r < rows; ++r) {
    const Key key{.seed = 3, .replicate = which, .step = static_cast<std::uint32_t>(r)};
    double y = truth[0] + noise * normal(key, 0, Purpose::kSample, 0);
    for (std::size_t j = 1; j < kDim; ++j)
      y += truth[j] * (z[j] = normal(key, 0, Purpose::kSample, static_cast<std::uint32_t>(j)));
    m.add(0, z, y);
  }
  return m;
}

double error(const std::vector<double>& x, const std::vector<double>& truth) {
  double sum = 0;
  for (std::size_t j = 0; j < kDim; ++j) sum += (x[j] - truth[j]) * (x[j] - truth[j]);
  return sum;
}

// With rows enough an agent alone errs by s^2 d / N, and so does one whose spread is wide.
TEST(Forecast, ManyRows) {
  const std::vector<double> x(kDim, 3.0), I = identity(1), none(kDim * kDim);
  const Forecast f(I, 1e6, {.D = identity(100), .s2 = 2}, none);
  EXPECT_NEAR(f.alone(x) * 1e6, 2.0 * kDim, 0.01);
  EXPECT_NEAR(f.personalised(x) * 1e6, 2.0 * kDim, 0.01);
}

// No spread: what is left is the centre's error, and that of an agent away from it.
TEST(Forecast, NoSpread) {
  const std::vector<double> I = identity(1);
  const Forecast f(I, 20, {.D = std::vector<double>(kDim * kDim), .s2 = 1}, identity(0.01));
  EXPECT_NEAR(f.personalised(std::vector<double>(kDim, 0.0)), 0.01 * kDim, 1e-12);
  EXPECT_NEAR(f.personalised(std::vector<double>(kDim, 0.1)), 0.02 * kDim, 1e-12);
}

// Against learning: the mean error over 2,000 tables, whose standard error is 2 %. The forecast is
// asymptotic in the number of coefficients, and knows the best strength, which GCV has to find.
TEST(Forecast, IsWhatLearningCosts) {
  const std::vector<double> truth = {1, 1, -0.5, 0.5, 0}, I = identity(1), none(kDim * kDim);
  const auto team = serial_team();
  for (std::size_t rows : {12, 30, 100}) {
    const Variances variances{.D = identity(0.25), .s2 = 1};
    const Forecast f(I, static_cast<double>(rows), variances, none);
    double alone = 0, own = 0;
    constexpr int kTables = 2000;
    for (std::uint32_t k = 0; k < kTables; ++k) {
      const Moments m = draw(rows, truth, 1, k);
      alone += error(fit_ridge(m, 0).x, truth) / kTables;
      // The centre is known to be 0: a prior so sure that no row moves it.
      const Decomposition model = decompose_known(m, variances, 1e12, *team);
      own += error(agent_posterior(m, model, 0).x, truth) / kTables;
    }
    EXPECT_NEAR(f.personalised(truth) / own, 1, 0.15) << rows;
    EXPECT_LT(f.alone(truth) / alone, 1.05) << rows;
    EXPECT_GT(f.alone(truth) / alone, rows < 20 ? 0.6 : 0.85) << rows;
  }
}

}  // namespace
}  // namespace affpcl
