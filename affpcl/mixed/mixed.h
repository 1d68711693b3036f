// The exact solver: a linear mixed model with the agents' coefficients as random effects, its
// baselines (independent and pooled ridge regressions), the model chosen for each agent, and scores
// on held-out rows.
#pragma once

#include "affpcl/table/model.h"

namespace affpcl {

// Several processes share the agents; only the first has the result.
FitResult fit_mixed(const Frame& frame, const FitOptions& options);

}  // namespace affpcl
