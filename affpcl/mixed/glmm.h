// Generalised linear mixed models by maximal Laplace evidence: the centre x_c, the random-effects
// covariance D (scalar, diagonal or full, whichever BIC selects) and the family's further
// parameters. Quasi-Newton steps in the metric of average information; a round is one sum over
// agents. docs/explain/families.md derives it.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/mixed/decomposition.h"
#include "affpcl/mixed/glmm_evidence.h"
#include "affpcl/mixed/posterior.h"

namespace affpcl {

struct Glmm {
  Covariance covariance = Covariance::kScalar;
  GlmmPoint point;
  Matrix D;           // [q][q]
  Matrix centre_cov;  // [p][p], of x_c given D
  // [q][q]: covariance of the effects' estimated variances; 0 where there are none, or D is full.
  Matrix spread_cov;
  double log_likelihood = 0;
  std::size_t numbers = 0;  // in D that are not 0
  double bic = 0;           // -2 log-likelihood + numbers log(agents)
  int rounds = 0;
  bool converged = true;
  bool singular = false;  // a variance, or a combination of random effects, has variance 0
};

struct GlmmOptions {
  GlmmEvidence::Options evidence = {};
  double tolerance = 1e-12;  // a step that promises a smaller gain of log-likelihood is the last
  int rounds = 200;          // at most, for each form of D
  // Five rounds that together gain less than this share of the value are the last.
  double enough = 0;
  // x_c has the prior N(0, I / centre_precision), which settles what the rows leave open.
  double centre_precision = 0.01;
  bool scalar = true, diagonal = true, full = true;  // forms of D to compare
  const Glmm* start = nullptr;                       // a guess; its form is then the only one
};

// The model that was selected, and what its agents held here found: modes v and curvatures, as
// GlmmEvidence has them.
struct GlmmLearnt {
  Glmm best;
  std::vector<Glmm> tried;
  std::vector<std::size_t> random;
  std::size_t predictors = 1, columns = 0;
  std::vector<double> modes, curvatures;
};
GlmmLearnt fit_glmm(const GlmmRows& rows, const Likelihood& likelihood, const GlmmOptions& options,
                    Team& team);

// Coefficients [p] of an agent held at this place, with covariances that include the uncertainty of
// x_c and, for a scalar or diagonal D, of D.
Posterior glmm_posterior(const GlmmLearnt& learnt, std::size_t held);
// What its variance along a vector [p] lacks where few agents determine D: variances are not below 0,
// so on average they are above the most likely ones (normal distributions cut off at 0).
double glmm_wider(const GlmmLearnt& learnt, std::size_t held, std::span<const double> along);
// Of an agent without rows.
Posterior glmm_unseen(const GlmmLearnt& learnt);

}  // namespace affpcl
