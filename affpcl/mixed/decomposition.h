// The central-local decomposition of linear models: agent i's coefficients are x_i = x_c + u_i with
// u_i ~ N(0, D) and noise of variance s^2. x_c, D and s^2 are learnt from the agents' moments by
// maximal evidence (x_c integrated out: REML), every step a sum over agents; D is a multiple of the
// identity, diagonal or full, whichever the evidence supports. docs/explain/fit.md derives it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"
#include "affpcl/table/moments.h"

namespace affpcl {

struct Variances {
  std::vector<double> D;  // [d][d]
  double s2 = 1;
};

struct Decomposition {
  Covariance covariance = Covariance::kScalar;
  Variances variances;
  std::vector<double> centre;      // x_c
  std::vector<double> centre_cov;  // [d][d], of x_c given D and s^2
  // [d][d]: how unsure the diagonal of D is; 0 where D was given, or is full.
  std::vector<double> spread_cov;
  double log_evidence = 0;
  double bic = 0;  // -2 log evidence + (numbers in D that are not 0) log(agents)
  int iterations = 0;
  bool converged = true;
};

struct DecompositionOptions {
  double tolerance = 1e-9;        // largest relative change of a variance in the last step
  double evidence_tolerance = 0;  // a step that gains no more is the last one
  int iterations = 200;           // at most, for each kind of D
  // x_c has a prior N(0, I / centre_precision): with columns and target standardised, 0.01 says no
  // more than that a coefficient is hardly above ten. It settles what the rows leave open.
  double centre_precision = 0.01;
  bool scalar = true, diagonal = true, full = true;  // kinds of D to compare
  const Variances* start = nullptr;  // a guess, such as that of nearly the same rows
};

// x_c, and how sure it is, where D and s^2 are known.
Decomposition decompose_given(const Moments& moments, const Variances& variances,
                              double centre_precision, Team& team);

// The evidence decides. `tried` has those that were compared, the chosen one among them.
struct Chosen {
  Decomposition best;
  std::vector<Decomposition> tried;
};
Chosen decompose(const Moments& moments, const DecompositionOptions& options, Team& team);

// An agent's own model: mean and covariance of x_i given all rows. The covariance includes not
// knowing x_c, and not quite knowing D (Prasad and Rao 1990). An agent whose rows say that it is no
// draw from N(0, D) is drawn from a wider one: outliers must not pay for being pulled to the
// centre.
struct Posterior {
  std::vector<double> x, cov;    // [d], [d][d]
  std::vector<double> smoother;  // cov were D known: over s^2 it gives a row's leverage
  double widened = 1;            // D times this: above 1 where the agent is unlike the others
};
Posterior agent_posterior(const Moments& moments, const Decomposition& model, std::size_t agent);

// Of an agent that has no rows: x_c, and D beside the uncertainty of x_c.
Posterior unseen_posterior(const Decomposition& model);

}  // namespace affpcl
