// Simulated rows of generalised linear mixed models, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/mixed/glmm_evidence.h"
#include "affpcl/random/streams.h"
#include "affpcl/table/class_basis.h"

namespace affpcl {

inline constexpr Family kEveryFamily[] = {
    Family::kGaussian, Family::kT,     Family::kBinomial,         Family::kMultinomial,
    Family::kOrdinal,  Family::kGamma, Family::kNegativeBinomial, Family::kPoisson};

// GoogleTest allows letters only.
inline std::string family_test_name(const testing::TestParamInfo<Family>& info) {
  std::string name = to_text(info.param);
  std::erase(name, '-');
  return name;
}

struct GlmmWorld {
  Family family = Family::kBinomial;
  std::size_t agents = 20, rows = 12, d = 2, classes = 3;
  std::vector<double> sd = {0.8, 0.5};  // of random effects, by column
  double intercept = -0.3;
  std::uint64_t seed = 1;

  // Filled by make().
  std::vector<double> X = {}, y = {}, weight = {}, offset = {};
  GlmmRows table = {};

  double draw(std::size_t i, std::size_t r, std::size_t what) const {
    return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(r)},
                  static_cast<std::int64_t>(i), Purpose::kSample, static_cast<std::uint32_t>(what));
  }
  double chance(std::size_t i, std::size_t r, std::size_t what) const {
    return uniform({.seed = seed, .replicate = 1, .step = static_cast<std::uint32_t>(r)},
                   static_cast<std::int64_t>(i), Purpose::kSample,
                   static_cast<std::uint32_t>(what));
  }
  GlmmWorld& make() {
    const std::size_t N = agents * rows, m = family == Family::kMultinomial ? classes - 1 : 1;
    X.assign(d * N, 1.0), y.assign(N, 0.0);
    table = {};
    for (std::size_t i = 0; i < agents; ++i) {
      table.runs.push_back({{{i * rows, i * rows + rows}, {}}});
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t at = i * rows + r;
        for (std::size_t j = 1; j < d; ++j) X[j * N + at] = draw(i, r, j);
        std::vector<double> eta(m);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t j = 0; j < d; ++j) {
            const double u =
                sd[j] * normal({.seed = seed}, static_cast<std::int64_t>(i), Purpose::kObjective,
                               static_cast<std::uint32_t>(a * d + j));
            eta[a] += X[j * N + at] * (u + (j == 0 ? intercept : 0.4));
          }
        y[at] = sample(eta, i, r);
      }
    }
    table.agents = agents, table.d = d, table.stride = N;
    table.X = X.data(), table.y = y.data();
    return *this;
  }
  double sample(const std::vector<double>& eta, std::size_t i, std::size_t r) const {
    const double u = chance(i, r, 0), e = std::exp(eta[0]);
    switch (family) {
      case Family::kBinomial:
        return u < e / (1 + e);
      case Family::kMultinomial: {
        const Vector logits = multiply(class_basis(classes), eta);
        double sum = 0, at = 0, k = -1;
        for (double v : logits) sum += std::exp(v);
        for (double v : logits) {
          at += std::exp(v), ++k;
          if (u * sum < at) break;
        }
        return k;
      }
      case Family::kOrdinal: {
        double k = 0;
        for (double t = 0;
             k + 1 < static_cast<double>(classes) && u > 1 / (1 + std::exp(-(t - eta[0]))); t += 1)
          ++k;
        return k;
      }
      case Family::kPoisson:
        return poisson(e, u);
      case Family::kNegativeBinomial:
        return poisson(e * gamma(i, r, 3) / 3, u);
      case Family::kGamma:
        return e * gamma(i, r, 3) / 3;
      case Family::kT: {
        double chi2 = 0;
        for (std::size_t k = 0; k < 4; ++k) chi2 += std::pow(draw(i, r, 40 + k), 2);
        return eta[0] + 0.5 * draw(i, r, 39) / std::sqrt(chi2 / 4);
      }
      default:
        return eta[0] + 0.7 * draw(i, r, 39);
    }
  }
  static double poisson(double mean, double u) {
    double k = 0, p = std::exp(-mean), sum = p;
    while (u > sum && k < 1000) p *= mean / ++k, sum += p;
    return k;
  }
  double gamma(std::size_t i, std::size_t r, int shape) const {  // of a whole shape
    double sum = 0;
    for (int k = 0; k < shape; ++k) sum -= std::log(chance(i, r, 50 + static_cast<std::size_t>(k)));
    return sum;
  }
  Likelihood likelihood() const { return {family, classes}; }
};

}  // namespace affpcl
