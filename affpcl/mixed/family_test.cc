#include "affpcl/mixed/family.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/mixed/glmm_world_test.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr std::size_t kRows = 7;
constexpr double kStep = 1e-5;

// Rows that a family can have, and a place where its derivatives are compared.
struct Case {
  explicit Case(Family family) : likelihood(family, 4), psi(likelihood.extras()) {
    for (std::size_t r = 0; r < kRows; ++r) {
      weight.push_back(0.5 + 0.3 * static_cast<double>(r));
      trials.push_back(family == Family::kBinomial ? static_cast<double>(r + 2) : 1);
      y.push_back(static_cast<double>(r % 4) + (family == Family::kGamma ? 0.3 : 0));
    }
    for (std::size_t k = 0; k < psi.size(); ++k) psi[k] = 0.4 + 0.3 * static_cast<double>(k);
    for (std::size_t k = 0; k < m() * kRows; ++k)
      eta.push_back(0.7 * normal({.seed = 3}, 0, Purpose::kSample, static_cast<std::uint32_t>(k)));
  }
  std::size_t m() const { return likelihood.predictors(); }
  RowBlock rows() const { return {kRows, y.data(), weight.data(), trials.data()}; }
  double value(const Vector& at, const Vector& with) const {
    Vector g(m() * kRows);
    return likelihood.slope(rows(), with, at.data(), g.data()) + likelihood.constant(rows(), with);
  }
  Vector slope(const Vector& at, const Vector& with) const {
    Vector g(m() * kRows);
    likelihood.slope(rows(), with, at.data(), g.data());
    return g;
  }
  Vector weights(const Vector& at, const Vector& with) const {
    Vector g(m() * kRows), w(likelihood.pairs() * kRows);
    likelihood.curve(rows(), with, at.data(), g.data(), w.data());
    return w;
  }
  Likelihood likelihood;
  Vector psi, y, weight, trials, eta;
};

Vector moved(Vector x, std::size_t at, double by) {
  x[at] += by;
  return x;
}

class EveryFamily : public testing::TestWithParam<Family> {};

TEST_P(EveryFamily, SlopeIsThatOfTheLogLikelihood) {
  const Case c(GetParam());
  const Vector g = c.slope(c.eta, c.psi);
  for (std::size_t k = 0; k < g.size(); ++k)
    EXPECT_NEAR(g[k],
                (c.value(moved(c.eta, k, kStep), c.psi) - c.value(moved(c.eta, k, -kStep), c.psi)) /
                    (2 * kStep),
                1e-8);
}

TEST_P(EveryFamily, WeightsAreMinusTheSlopeOfTheSlope) {
  if (GetParam() == Family::kT) GTEST_SKIP() << "t has expected information";
  const Case c(GetParam());
  const Vector w = c.weights(c.eta, c.psi);
  for (std::size_t b = 0; b < c.m(); ++b)
    for (std::size_t r = 0; r < kRows; ++r) {
      const Vector up = c.slope(moved(c.eta, b * kRows + r, kStep), c.psi),
                   down = c.slope(moved(c.eta, b * kRows + r, -kStep), c.psi);
      for (std::size_t a = b; a < c.m(); ++a)
        EXPECT_NEAR(w[(a * (a + 1) / 2 + b) * kRows + r],
                    -(up[a * kRows + r] - down[a * kRows + r]) / (2 * kStep), 1e-8);
    }
}

TEST_P(EveryFamily, ThirdIsTheSlopeOfWeightsTimesLeverages) {
  const Case c(GetParam());
  Vector H(c.likelihood.pairs() * kRows), T(c.m() * kRows);
  for (std::size_t k = 0; k < H.size(); ++k) H[k] = 0.2 + 0.1 * static_cast<double>(k % 5);
  c.likelihood.third(c.rows(), c.psi, c.eta.data(), H.data(), T.data());
  const auto total = [&](const Vector& at, std::size_t r) {
    const Vector w = c.weights(at, c.psi);
    double sum = 0;
    for (std::size_t a = 0, k = 0; a < c.m(); ++a)
      for (std::size_t b = 0; b <= a; ++b, ++k)
        sum += (a == b ? 1 : 2) * H[k * kRows + r] * w[k * kRows + r];
    return sum;
  };
  for (std::size_t k = 0; k < T.size(); ++k)
    EXPECT_NEAR(
        T[k],
        (total(moved(c.eta, k, kStep), k % kRows) - total(moved(c.eta, k, -kStep), k % kRows)) /
            (2 * kStep),
        1e-8);
}

TEST_P(EveryFamily, ExtrasAreTheSlopesInPsi) {
  const Case c(GetParam());
  Vector H(kRows), a(kRows);
  for (std::size_t r = 0; r < kRows; ++r)
    H[r] = 0.3 + 0.1 * static_cast<double>(r), a[r] = 0.2 - 0.1 * static_cast<double>(r);
  Vector out(c.psi.size());
  c.likelihood.add_extras(c.rows(), c.psi, c.eta.data(), H.data(), a.data(), out.data());
  const auto total = [&](const Vector& psi) {
    double sum = c.value(c.eta, psi);
    const Vector w = c.weights(c.eta, psi), g = c.slope(c.eta, psi);
    for (std::size_t r = 0; r < kRows; ++r) sum -= H[r] * w[r] / 2 + a[r] * g[r] / 2;
    return sum;
  };
  for (std::size_t k = 0; k < out.size(); ++k)
    EXPECT_NEAR(out[k],
                (total(moved(c.psi, k, kStep)) - total(moved(c.psi, k, -kStep))) / (2 * kStep),
                1e-7);
}

TEST_P(EveryFamily, NamesAreReadBack) { EXPECT_EQ(family_named(to_text(GetParam())), GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, EveryFamily, testing::ValuesIn(kEveryFamily), family_test_name);

TEST(Families, ProbabilitiesOfAllValuesSumToOne) {
  const double eta = 0.8;
  const auto total = [&](Family family, const Vector& psi, std::size_t values) {
    const Likelihood l(family, 4);
    double sum = 0, g;
    for (std::size_t k = 0; k < values; ++k) {
      const double y = static_cast<double>(k);
      const RowBlock row{1, &y, nullptr, nullptr};
      sum += std::exp(l.slope(row, psi, &eta, &g) + l.constant(row, psi));
    }
    return sum;
  };
  EXPECT_NEAR(total(Family::kPoisson, {}, 60), 1, 1e-12);
  EXPECT_NEAR(total(Family::kNegativeBinomial, {0.5}, 400), 1, 1e-12);
  EXPECT_NEAR(total(Family::kOrdinal, {0.1, -0.4}, 4), 1, 1e-12);
}

// Expected log-likelihoods of one row over normal predictors: below what a fine grid gives, and close.
TEST(Families, AnExpectationIsBoundedFromBelow) {
  const double y = 2;
  const RowBlock row{1, &y, nullptr, nullptr};
  const Likelihood l(Family::kMultinomial, 3);
  for (double sd : {0.0, 0.3, 1.0, 3.0}) {
    const Vector eta{0.7, -0.4}, V{sd * sd, 0.3 * sd * sd, 0.5 * sd * sd};
    Vector g(2), w(3);
    double expected = 0;
    for (double a = -8; a <= 8; a += 0.05)
      for (double b = -8; b <= 8; b += 0.05) {
        const double root = std::sqrt(V[2] - (V[0] > 0 ? V[1] * V[1] / V[0] : 0));
        const Vector at{eta[0] + sd * a, eta[1] + (sd > 0 ? V[1] / sd : 0) * a + root * b};
        expected += 0.0025 / (2 * 3.14159265358979) * std::exp(-(a * a + b * b) / 2) *
                    l.slope(row, {}, at.data(), g.data());
      }
    const double bound = l.expect(row, eta.data(), V.data(), g.data(), w.data());
    EXPECT_LE(bound, expected + 1e-9) << sd;
    EXPECT_GT(bound, expected - 0.05 * sd * sd * sd * sd - 1e-9) << sd;
    // Its slopes.
    Vector no_g(2), no_w(3);
    const auto at = [&](const Vector& mean, const Vector& cov) {
      return l.expect(row, mean.data(), cov.data(), no_g.data(), no_w.data());
    };
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(g[k], (at(moved(eta, k, kStep), V) - at(moved(eta, k, -kStep), V)) / (2 * kStep),
                  1e-7);
    for (std::size_t k = 0; k < 3 && sd > 0; ++k)  // V_10 stands for V_01 too
      EXPECT_NEAR(w[k] * (k == 1 ? 2 : 1),
                  -2 * (at(eta, moved(V, k, kStep)) - at(eta, moved(V, k, -kStep))) / (2 * kStep),
                  1e-7);
  }
}

TEST(Families, ExtremePredictorsStayFinite) {
  for (Family family : {Family::kBinomial, Family::kOrdinal})
    for (double eta : {-800.0, 800.0}) {
      const Likelihood l(family, 3);
      const double y = 1;
      double g = 0, w = 0;
      const Vector psi(l.extras());
      EXPECT_TRUE(std::isfinite(l.curve({1, &y, nullptr, nullptr}, psi, &eta, &g, &w)));
      EXPECT_TRUE(std::isfinite(g) && std::isfinite(w));
    }
}

}  // namespace
}  // namespace affpcl
