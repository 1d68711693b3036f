// The baselines of a generalised linear mixed model: a ridge-penalised generalised linear model of
// one agent's rows, or of all rows. The strength and the share of the covariance that predictions
// average over are tuned by approximate leave-one-out loss.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/mixed/glmm_evidence.h"

namespace affpcl {

struct Penalised {
  Vector x;        // [p]
  Matrix inverse;  // [p][p]: covariance of x, times the share of it that serves predictions best
  double strength = 0;
};

// Of one agent held here; psi are the family's further parameters, which all agents share.
Penalised fit_penalised(const GlmmRows& rows, const Likelihood& likelihood,
                        std::span<const double> psi, std::size_t held);
// Of all agents' rows.
Penalised fit_pooled(const GlmmRows& rows, const Likelihood& likelihood,
                     std::span<const double> psi, Team& team);

}  // namespace affpcl
