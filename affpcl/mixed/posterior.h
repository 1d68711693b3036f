// The coefficients of one agent given all rows: posterior mean and covariance (BLUP).
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/mixed/decomposition.h"
#include "affpcl/table/moments.h"

namespace affpcl {

// Mean and covariance of x_i. The covariance includes the uncertainty of x_c and of D (Prasad and
// Rao 1990). An agent whose rows reject N(0, D) is drawn from a wider law, so that outliers do not
// pay for being pulled to the centre.
struct Posterior {
  std::vector<double> x, cov;    // [d], [d][d]
  std::vector<double> smoother;  // cov were D known: over s^2 it gives a row's leverage
  double widened = 1;            // factor of D: above 1 for an agent unlike the others
};
Posterior agent_posterior(const Moments& moments, const Decomposition& model, std::size_t agent);

// For an agent without rows: x_c, and D plus the covariance of x_c.
Posterior unseen_posterior(const Decomposition& model);

}  // namespace affpcl
