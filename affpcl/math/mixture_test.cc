// The fused correction against plain loops in long double: all instruction sets, both precisions,
// sizes on both sides of every tile.
#include "affpcl/math/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "affpcl/math/kernels.h"

namespace affpcl {
namespace {

// A number of size 1 for every place.
double number(int i, int r, int salt) {
  return 1.4 * std::sin(12.9898 * i + 78.233 * r + 3.7 * salt);
}

// One block of samples, each from a component of its own.
struct Case {
  Case(int components, int dim, int rows, int count, double radius) : dim_(dim), count_(count) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (int e = 0; e < components; ++e) {
      weights.push_back((1 + e % 3) / (2.0 * components));
      for (int r = 0; r < dim; ++r) means.push_back(radius * number(e, r, 1));
    }
    s = Store(dim, kLanes), own = Store(dim, kLanes), g = Store(rows, kLanes);
    for (double& x : s.all()) x = nan;  // padding must not leak
    for (double& x : g.all()) x = nan;
    for (int l = 0; l < count; ++l) {
      const int e = l % components;
      for (int r = 0; r < dim; ++r) {
        const double m = means[static_cast<std::size_t>(e * dim + r)];
        own.all()[static_cast<std::size_t>(r * kLanes + l)] = m;
        s.all()[static_cast<std::size_t>(r * kLanes + l)] = m + number(l, r, 2);
      }
      for (int r = 0; r < rows; ++r)
        g.all()[static_cast<std::size_t>(r * kLanes + l)] = number(l, r, 3);
    }
  }
  In in(const Store& store) const {
    return {store.all().data(), static_cast<int>(store.all().size()) / kLanes, kLanes};
  }
  // rho_e at lane l, for every e
  std::vector<double> ratios(int l) const {
    std::vector<long double> logit(weights.size());
    for (std::size_t e = 0; e < logit.size(); ++e)
      for (int r = 0; r < dim_; ++r) {
        const long double m =
            means[e * static_cast<std::size_t>(dim_) + static_cast<std::size_t>(r)];
        logit[e] += m * (in(s).at(r, l) - m / 2);
      }
    const long double most = *std::max_element(logit.begin(), logit.end());
    long double Z = 0;
    for (std::size_t e = 0; e < logit.size(); ++e) Z += weights[e] * std::exp(logit[e] - most);
    std::vector<double> rho;
    for (const long double x : logit) rho.push_back(static_cast<double>(std::exp(x - most) / Z));
    return rho;
  }
  int dim_, count_;
  std::vector<double> means, weights;
  Store s, own, g;
};

class MixtureOn : public ::testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  void SetUp() override { use_instruction_set(std::get<0>(GetParam())); }
  void TearDown() override { use_instruction_set(""); }
};

TEST_P(MixtureOn, SumsEqualPlainLoops) {
  const Precision precision = std::get<1>(GetParam());
  const double tolerance = precision == Precision::kDouble ? 1e-13 : 3e-6;
  const int sizes[][4] = {// components, dim, rows, count
                          {2, 1, 1, 1},    {3, 2, 3, 5},    {20, 5, 5, 20},   {33, 3, 4, 64},
                          {65, 20, 20, 7}, {100, 9, 9, 63}, {16, 84, 84, 64}, {300, 4, 6, 62}};
  for (const auto& [components, dim, rows, count] : sizes)
    for (const double radius : {0.0, 0.3, 3.0}) {
      const Case c(components, dim, rows, count, radius);
      const Mixture mixture(dim, c.means, c.weights);
      EXPECT_EQ(mixture.components(), components);
      std::vector<double> M(static_cast<std::size_t>(components * rows + 1), 1.0);
      Scratch scratch;
      mixture.accumulate(c.in(c.s), c.in(c.own), c.in(c.g), count, precision, scratch, M.data());
      std::vector<std::vector<double>> rho;
      for (int l = 0; l < count; ++l) rho.push_back(c.ratios(l));
      for (int e = 0; e < components; ++e) {
        for (int r = 0; r < rows; ++r) {
          double want = 1, size = 1;
          for (int l = 0; l < count; ++l) {
            const double term =
                rho[static_cast<std::size_t>(l)][static_cast<std::size_t>(e)] * c.in(c.g).at(r, l);
            want += term, size += std::abs(term);
          }
          // A logit of size x is known to x units in the last place.
          ASSERT_NEAR(M[static_cast<std::size_t>(r * components + e)], want,
                      tolerance * size * (1 + radius * radius * dim))
              << components << " components, dim " << dim << ", radius " << radius;
        }
      }
      EXPECT_EQ(M.back(), 1);
    }
}

TEST_P(MixtureOn, FarApartNothingOverflows) {
  const Case c(40, 3, 2, 40, 1e3);
  const Mixture mixture(3, c.means, c.weights);
  std::vector<double> M(80);
  Scratch scratch;
  mixture.accumulate(c.in(c.s), c.in(c.own), c.in(c.g), 40, std::get<1>(GetParam()), scratch,
                     M.data());
  for (int e = 0; e < 40; ++e)
    for (int r = 0; r < 2; ++r)  // only the agent's own sample counts
      EXPECT_NEAR(M[static_cast<std::size_t>(r * 40 + e)],
                  c.in(c.g).at(r, e) / c.weights[static_cast<std::size_t>(e)], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, MixtureOn,
                         ::testing::Combine(::testing::ValuesIn(available_instruction_sets()),
                                            ::testing::Values(Precision::kDouble,
                                                              Precision::kSingle)),
                         [](const auto& set) {
                           return std::get<0>(set.param) +
                                  (std::get<1>(set.param) == Precision::kDouble ? "Double"
                                                                                : "Single");
                         });

TEST(Mixture, OwnRatioIsTheRatioAtTheOwnSample) {
  const Case c(50, 4, 1, 50, 0.7);
  const Mixture mixture(4, c.means, c.weights);
  Buffer rho(kLanes);
  Scratch scratch;
  mixture.own_ratio(c.in(c.s), c.in(c.own), 50, scratch, {rho.data(), 1});
  for (int l = 0; l < 50; ++l) {
    const double want = c.ratios(l)[static_cast<std::size_t>(l)];
    EXPECT_NEAR(rho.data()[l], want, 1e-13 * want);
  }
}

// Far more components than fit the cache: samples come in several parts.
TEST(Mixture, PartsOfABlockAddUp) {
  const Case c(9000, 2, 1, 64, 0.5);
  const Mixture mixture(2, c.means, c.weights);
  std::vector<double> whole(9000), parts(9000);
  Scratch scratch;
  mixture.accumulate(c.in(c.s), c.in(c.own), c.in(c.g), 64, Precision::kDouble, scratch,
                     whole.data());
  for (int l = 0; l < 64; l += 8) {
    scratch.clear();
    mixture.accumulate({c.in(c.s).p + l, 2}, {c.in(c.own).p + l, 2}, {c.in(c.g).p + l, 1}, 8,
                       Precision::kDouble, scratch, parts.data());
  }
  for (std::size_t e = 0; e < 9000; ++e) ASSERT_NEAR(whole[e], parts[e], 1e-12);
}

}  // namespace
}  // namespace affpcl
