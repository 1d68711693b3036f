// What an agent's models can be expected to err before they are learnt, were its coefficients
// known: the expected squared error on new rows, beyond the noise, of ridge regressions on N rows
// with a known second moment (deterministic equivalents; Hastie, Montanari, Rosset and Tibshirani
// 2022, and Dobriban and Wager 2018). With M = Sigma, k (1 - tr M (M + k)^-1 / N) = lambda and
// g = tr M^2 (M + k)^-2 / N, the error is (bias + s^2 g) / (1 - g), bias = k^2 x'(M + k)^-1 M (M +
// k)^-1 x.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/mixed/decomposition.h"

namespace affpcl {

class Forecast {
 public:
  // second: E z z', [d][d], z[0] = 1; D and s^2 of the agent; centre_cov: of x_c once it is learnt.
  Forecast(std::span<const double> second, double rows, const Variances& variances,
           std::span<const double> centre_cov);

  // Ridge on the agent's rows alone, at the best strength.
  double alone(std::span<const double> x) const;
  // The decomposition's model of an agent that lies u away from the centre.
  double personalised(std::span<const double> u) const;

 private:
  void add_strengths();

  std::size_t d_;
  double rows_, s2_;
  std::vector<double> values_, vectors_;  // of the covariance of the columns
  // Per strength of a ridge: what it loses of each squared coordinate, and what it fits of noise.
  struct Strength {
    std::vector<double> lost;
    double noise = 0;
  };
  std::vector<Strength> strengths_;
  std::vector<double> bias_;      // [d][d]: u' bias u
  double fixed_ = 0, scale_ = 1;  // (u' bias u + fixed) * scale
};

}  // namespace affpcl
