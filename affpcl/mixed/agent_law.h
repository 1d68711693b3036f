// How agents differ beside their coefficients. Agent i has noise variance f_i s^2 and random effects
// N(0, t_i D): log f_i ~ N(0, v), and t_i is 1 or, for an outlying agent, larger. What the rows leave
// open of f_i, t_i, v and the share of outlying agents is averaged over on a grid, so no agent
// changes its model at a threshold. docs/explain/fit.md derives it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/mixed/decomposition.h"

namespace affpcl {

// log f has the values kStep * (k - kReach); t is exp(kStep * kWideSteps * w), w = 0 .. kWide - 1.
// The posterior mean of coefficients depends on r = f / t alone, whose grid has kRatios values.
struct LawGrid {
  static constexpr double kStep = 0.25;
  static constexpr std::size_t kReach = 28, kWide = 5, kWideSteps = 6;
  static constexpr std::size_t kNoises = 2 * kReach + 1;
  static constexpr std::size_t kRatios = kNoises + (kWide - 1) * kWideSteps;
  static std::size_t ratio(std::size_t noise, std::size_t wide) {
    return noise + (kWide - 1 - wide) * kWideSteps;
  }
  static const Vector& noises();  // f
  static const Vector& wides();   // t
  static const Vector& ratios();  // f / t
  static const Vector& odds();    // prior weight of each t but the first, proportional to 1 / t
};

// The prior of (f_i, t_i), learnt from all agents: weights that sum to 1.
struct AgentLaw {
  Vector usual, outlying;   // [kNoises]: with t = 1; with any larger t
  static AgentLaw plain();  // f = t = 1
  bool is_plain() const;
  double mean_noise() const;
};

// An agent's rows in the eigenbasis of L'A L, where D = L L'.
struct Spectrum {
  // root: L', so that D = root' root.
  Spectrum(const Moments& moments, MatrixView root, std::span<const double> centre,
           std::size_t agent);
  Matrix basis;                   // row k is (L q_k)'
  Vector e, c;                    // eigenvalues, and q_k'L'(b - A x_c)
  double residual = 0, rows = 0;  // squared residuals from the centre
};

// What an agent's rows say of f and t: the likelihood, and with a law the posterior.
class AgentGrid {
 public:
  AgentGrid(const Spectrum& spectrum, double s2);
  // The likelihood's logarithm is log_top + log(likelihood).
  double log_top() const { return log_top_; }
  // By f: with t = 1; the mean of 1 and of 1/t over larger t. Three rows of kNoises numbers.
  void summarise(std::span<double> out) const;

  struct Weights {
    Vector ratio, noise_ratio;                   // [kRatios]: weight, and weight times f
    double noise = 1;                            // E f
    double inverse_noise = 1, inverse_wide = 1;  // E 1/f, E 1/t
    double outlying = 0;                         // probability of t > 1
  };
  Weights weights(const AgentLaw& law) const;

 private:
  Matrix p_;  // [kWide][kNoises]
  double log_top_ = 0;
};

// The law that the rows support at a decomposition. Sums over squares weigh an agent by E 1/f and
// E 1/t, whose inverses are its f and t there.
struct LearntLaw {
  AgentLaw law;
  std::vector<double> noise, wide;  // by agent held
};
LearntLaw learn_law(const Moments& moments, const Decomposition& model, Team& team);
// The same for agents whose law is known.
LearntLaw agents_under(const AgentLaw& law, const Moments& moments, const Decomposition& model,
                       Team& team);
// Moments divided by the agents' noise, with t beside them.
Moments divided(const Moments& moments, const LearntLaw& by);

}  // namespace affpcl
