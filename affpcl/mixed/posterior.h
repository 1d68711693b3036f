// The coefficients of one agent given all rows: posterior mean and covariance (BLUP).
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/mixed/decomposition.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/table/moments.h"

namespace affpcl {

// Mean and covariance of x_i. The covariance includes the uncertainty of x_c and of D (Prasad and
// Rao 1990).
struct Posterior {
  std::vector<double> x, cov;    // [d], [d][d]
  std::vector<double> smoother;  // cov were D known: over s2 it gives a row's leverage
  double s2 = 1;                 // noise variance
  double widened = 1;            // factor of D: above 1 for an outlying agent
};
// At one decomposition of these moments, with the agent's Moments::wide.
Posterior agent_posterior(const Moments& moments, const Decomposition& model, std::size_t agent);

// Averaged over the forms of D, the agent's noise and whether it is outlying. `moments` are as the
// rows have them, not those of learnt.
Posterior averaged_posterior(const Moments& moments, const Learnt& learnt, std::size_t agent);

// x alone, which costs less.
std::vector<double> averaged_coefficients(const Moments& moments, const Learnt& learnt,
                                          std::size_t agent);

// For an agent without rows: x_c, and D plus the covariance of x_c.
Posterior unseen_posterior(const Decomposition& model);
Posterior averaged_unseen(const Learnt& learnt);

}  // namespace affpcl
