// Evidence of a generalised linear mixed model: the log-likelihood of all rows with every agent's
// random effects integrated out, its slope, and the information that a step needs. The integral is
// Laplace's approximation, quadrature, or a lower bound. All are sums over agents, the same to the
// bit for any team. docs/explain/families.md derives them.
//
// Sizes: d columns, m linear predictors, p = m d coefficients (predictor after predictor), c
// columns with a random effect, q = m c random effects. An agent has the coefficients x_c + u with
// u = L v, v ~ N(0, I): a variance of 0 is a number like any other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/mixed/family.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"

namespace affpcl {

// Rows in columns, agent after agent; each process has those of a run of agents.
struct GlmmRows {
  struct Run {
    std::size_t from = 0, to = 0;
  };
  std::size_t agents = 0;  // all
  std::size_t first = 0;   // that has rows here
  std::size_t d = 0;
  std::size_t stride = 0;  // X is [d][stride]
  const double* X = nullptr;
  const double *y = nullptr, *weight = nullptr, *trials = nullptr;
  const double* offset = nullptr;        // [m][stride]
  std::vector<std::array<Run, 2>> runs;  // two for each agent held here: a fold may be left out

  std::size_t at(std::size_t agent) const { return agent - first; }
  std::size_t held() const { return runs.size(); }
  RowBlock block(std::size_t from, std::size_t count) const;
};

// Where the evidence is asked for.
struct GlmmPoint {
  Vector centre;  // x_c [p]
  Matrix root;    // L [q][q], lower triangular
  Vector psi;     // further parameters of the family
};

struct EvidenceSums {
  double value = 0;
  Vector centre;       // slope in x_c
  Matrix information;  // sum of W_i [p][p]: inverse covariance of x_c
  // In D = L L'. Not full: [1][c], of variances that a column's effects on all predictors share.
  Matrix D_slope;
  // Average information about the numbers of D: variances [c][c], or all of the lower triangle.
  Matrix D_information;
  Matrix D_expected;  // expected information about the variances; not of a full D
  Vector psi;
  Matrix psi_information;
  double unfinished = 0;  // agents whose mode was not found
};

class GlmmEvidence {
 public:
  struct Options {
    std::vector<std::size_t> random = {};  // columns with a random effect
    // Points of adaptive Gauss-Hermite quadrature where there is one random effect; 1: Laplace.
    int quadrature = 1;
    // The Gaussian variational bound instead, of binomial and multinomial targets. It holds where an
    // agent's classes are separated; Laplace's approximation does not.
    bool bound = false;
    // Steps to an agent's bound end when one gains less than this, or than a share of the largest.
    double bound_gain = 1e-10, bound_share = 0;
  };
  GlmmEvidence(const GlmmRows& rows, const Likelihood& likelihood, Options options, Team& team);
  ~GlmmEvidence();

  std::size_t coefficients() const;  // p
  std::size_t effects() const;       // q
  // full: slope and information of all entries of D. Starts from the modes found last.
  const EvidenceSums& operator()(const GlmmPoint& point, bool full);

  // After a call, of the agents held: v [q] and -d^2 l / dx dx' at the mode, of the bound its
  // expectation, in blocks [m (m + 1) / 2][d][d].
  const std::vector<double>& modes() const;
  const std::vector<double>& curvatures() const;
  void start_at(const std::vector<double>& modes, const std::vector<double>& curvatures);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A += X diag(w) X' for every pair of linear predictors. X is [d][count], w [pairs][count], A
// [pairs][d][d]. `scaled` is memory for one X; w is used up.
void add_curvature(MatrixView X, std::size_t m, double* w, MatrixSpan scaled, double* A);
// [p][p] of its blocks.
void assemble(const double* blocks, std::size_t m, std::size_t d, MatrixSpan A);

// Nodes and weights for the weight function exp(-t^2).
struct GaussHermite {
  explicit GaussHermite(int points);
  Vector nodes, weights;
};

// The mean of a row's target, or the probabilities of its classes, over normal channels
// (Likelihood::basis) with these variances.
Vector expected_mean(const Likelihood& likelihood, std::span<const double> psi,
                     std::span<const double> channels, std::span<const double> variances);

}  // namespace affpcl
