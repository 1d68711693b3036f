// The central-local decomposition of linear models: agent i's coefficients are x_i = x_c + u_i with
// u_i ~ N(0, D) and noise of variance s^2. x_c, D and s^2 are learnt from the agents' moments by
// maximal evidence (REML; ML where x_c is not integrated out), every step a sum over agents; D is a
// multiple of the
// identity, diagonal or full, whichever the evidence supports. docs/explain/fit.md derives it.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/mixed/options.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"
#include "affpcl/table/moments.h"

namespace affpcl {

struct Variances {
  std::vector<double> D;  // [d][d]
  double s2 = 1;
};

// One step of the search for D and s^2.
struct ClimbStep {
  double log_evidence = 0, s2 = 0;  // after the step
  double change = 0;                // the largest relative change of a variance
};

struct Decomposition {
  Covariance covariance = Covariance::kScalar;
  Variances variances;
  std::vector<double> centre;      // x_c
  std::vector<double> centre_cov;  // [d][d], of x_c where D and s^2 are known
  // [d][d], covariance of the estimated diagonal of D; 0 where D is known, or is full.
  std::vector<double> variance_cov;
  double log_evidence = 0;
  double numbers = 0;          // in D that are not 0
  double bic = 0;              // -2 log evidence + numbers log(agents)
  std::vector<ClimbStep> log;  // of the search, step by step
  bool converged = true;
};

// x_c, and how sure it is, where D and s^2 are known.
Decomposition decompose_known(const Moments& moments, const Variances& variances,
                              double centre_precision, Team& team, bool restricted = true);
// The log-likelihood of standardised targets, restricted or not: the log evidence without the prior
// of x_c.
double log_likelihood(double log_evidence, const std::vector<double>& centre,
                      double centre_precision, bool restricted);

// The form of D with the smallest BIC, and all that were compared.
struct Chosen {
  Decomposition best;
  std::vector<Decomposition> tried;
};
Chosen decompose(const Moments& moments, const DecompositionOptions& options, Team& team);

}  // namespace affpcl
