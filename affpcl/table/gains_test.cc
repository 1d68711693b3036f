#include "affpcl/table/gains.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

ErrorLaw learn_errors(const std::vector<NoisyError>& list) {
  return affpcl::learn_errors(list, list.size(), *serial_team());
}
SharedVariance share_variances(const std::vector<double>& s2, const std::vector<double>& rows) {
  return affpcl::share_variances(s2, rows, s2.size(), *serial_team());
}
std::vector<ShrunkGain> shrink_gains(const std::vector<GainEvidence>& agents, double freedom) {
  return affpcl::shrink_gains(agents, freedom, agents.size(), *serial_team());
}

double draw(std::int64_t i, std::uint32_t what) {
  return normal({.seed = 5}, i, Purpose::kSample, what);
}

// What learn_errors maximises, written from its definition.
double log_posterior(const std::vector<NoisyError>& errors, const ErrorLaw& law) {
  double sum = kNoError * std::log(law.shares[0]) - law.mean * law.mean / 2;
  for (double s : law.shares)
    sum += kAnyError / static_cast<double>(law.shares.size()) * std::log(s);
  for (const NoisyError& e : errors) {
    double p = 0;
    for (std::size_t k = 0; k < law.shares.size(); ++k) {
      const double v = kErrorComponents[k] * e.resolution + e.noise;
      const double away = e.value - law.mean * std::sqrt(e.resolution);
      p += law.shares[k] * std::exp(-away * away / (2 * v)) / std::sqrt(2 * std::numbers::pi * v);
    }
    sum += std::log(p);
  }
  return sum;
}

std::vector<NoisyError> errors(double mean, double sd) {
  std::vector<NoisyError> list;
  for (std::int64_t i = 0; i < 200; ++i) {
    const double unit = std::exp(draw(i, 0));
    list.push_back({unit * (mean + sd * draw(i, 1) + std::sqrt(2.0) * draw(i, 2)), 2 * unit * unit,
                    unit * unit});
  }
  return list;
}

TEST(Gains, TheLawOfErrorsIsTheMostLikelyOne) {
  const std::vector<NoisyError> list = errors(0.5, 2);
  const ErrorLaw law = learn_errors(list);
  const double most = log_posterior(list, law);
  for (const double step : {-0.01, 0.01}) {
    ErrorLaw other = law;
    other.mean += step;
    EXPECT_LT(log_posterior(list, other), most);
    for (std::size_t k = 0; k < law.shares.size(); ++k) {
      other = law;
      other.shares[k] *= 1 + step;
      double sum = 0;
      for (double s : other.shares) sum += s;
      for (double& s : other.shares) s /= sum;
      EXPECT_LT(log_posterior(list, other), most + 1e-6) << k;
    }
  }
}

// A mean of .5 and no other error: the standard error of the mean is about sqrt(2/200) = .1.
TEST(Gains, TheLawFindsAMeanAndNoSpread) {
  const ErrorLaw law = learn_errors(errors(0.5, 0));
  EXPECT_NEAR(law.mean, 0.5, 0.33);
  EXPECT_GT(law.shares[0] + law.shares[1], 0.8);
  const ErrorLaw wide = learn_errors(errors(0, 4));
  EXPECT_LT(wide.shares[0], 0.3);
}

// Without data the law is its prior, and the mean is 0.
TEST(Gains, WithoutHeldOutRowsTheChosenModelsOwnErrorIsAllThereIs) {
  const ErrorLaw law = learn_errors({{0, kUnknown, 1}});
  EXPECT_EQ(law.mean, 0);
  EXPECT_NEAR(law.shares[0], (kNoError + kAnyError / 7) / (kNoError + kAnyError), 1e-6);
  const std::vector<ShrunkGain> gains =
      shrink_gains({{.rows = 1, .in_hand = {4, 4}, .vague = 0, .unsure = 0.01}}, 3);
  EXPECT_NEAR(gains[0].gain.mean, 4, 1e-9);
}

// Many agents with exact rows: the gain of each is what its own rows say, up to the share that the
// widest component takes of an error far beyond it and its mean: 1/129 of their difference.
TEST(Gains, ExactRowsAreBelieved) {
  std::vector<GainEvidence> agents;
  for (std::int64_t i = 0; i < 50; ++i) {
    const double slope = 0.5 + draw(i, 3);
    agents.push_back({.rows = 1e8,
                      .gap = 2,
                      .norm = 2,
                      .slope = slope,
                      .slope2 = 2,
                      .in_hand = {2, 2},
                      .vague = 0,
                      .unsure = 0,
                      .stated = 1});
  }
  const std::vector<ShrunkGain> gains = shrink_gains(agents, 3);
  for (std::size_t i = 0; i < gains.size(); ++i) {
    EXPECT_NEAR(gains[i].gain.mean, 2 - 2 * agents[i].slope,
                2 * (1 + std::abs(agents[i].slope)) / 129);
    EXPECT_EQ(gains[i].probability > 0.5, gains[i].gain.mean > 0);
  }
}

TEST(Gains, AVagueUnitMovesNoEndAcrossZero) {
  for (const double unsure : {0.001, 0.2, 3.0})
    for (const double vague : {0.0, 0.3, 2.0}) {
      const GainEvidence a{.rows = 1, .in_hand = {1, 1}, .vague = vague, .unsure = unsure};
      GainEvidence exact = a;
      exact.vague = 0;
      const Estimate e = shrink_gains({a}, 2)[0].gain, sharp = shrink_gains({exact}, 2)[0].gain;
      EXPECT_EQ(e.lo > 0, sharp.lo > 0);
      EXPECT_LE(e.lo, sharp.lo);
      EXPECT_GE(e.hi, sharp.hi);
    }
}

// Where held-out losses bend the wrong way between the models, nothing says how far a gain may be off.
TEST(Gains, AGapBelowZeroHasNoInterval) {
  const ShrunkGain g = shrink_gains({{.rows = 20,
                                      .gap = -0.1,
                                      .norm = -0.1,
                                      .slope = -0.3,
                                      .slope2 = 1,
                                      .in_hand = {-0.1, -0.1}}},
                                    3)[0];
  EXPECT_DOUBLE_EQ(g.gain.mean, 0.5);
  EXPECT_TRUE(std::isnan(g.gain.lo) && std::isnan(g.gain.hi));
  EXPECT_EQ(g.probability, 0.5);
}

TEST(Gains, AModelThatIsTheIndependentOneGainsNothing) {
  const ShrunkGain g = shrink_gains({{.rows = 20, .in_hand = 0}}, 3)[0];
  EXPECT_EQ(g.gain.lo, 0);
  EXPECT_EQ(g.gain.hi, 0);
  EXPECT_EQ(g.probability, 0.5);
}

// Equal mean squares of many rows need no shrinkage; of two rows each, they lean on the others.
TEST(Gains, VariancesOfFewRowsLeanOnTheOthers) {
  std::vector<double> s2, few(400, 2.0), many(400, 1000.0);
  for (std::int64_t i = 0; i < 400; ++i)
    s2.push_back((std::pow(draw(i, 4), 2) + std::pow(draw(i, 5), 2)) / 2);
  const SharedVariance equal = share_variances(s2, few);
  EXPECT_NEAR(equal.typical, 1, 0.2);
  EXPECT_GE(equal.prior_rows, 16);
  EXPECT_NEAR(equal.of(3, 2), 1, 0.4);
  const SharedVariance unequal = share_variances(s2, many);
  EXPECT_LE(unequal.prior_rows, 4);
  EXPECT_NEAR(unequal.of(3, 1000), 3, 0.05);
}

}  // namespace
}  // namespace affpcl
