// One model per agent in one pass over the rows: the paper's stochastic approximation, any method
// of the catalogue, beside learning alone and one model for all on the same samples. Every row is
// predicted before it is learnt from, and these predictions are the score. Each agent is given the
// model that its rows so far speak for.
//
// It runs in coordinates in which the columns of all rows together have covariance I, so that one
// step size suits all directions: alpha_t = 2 / (t + t0) with the first step half of what the
// largest rows allow (docs/explain/fit.md).
#pragma once

#include "affpcl/table/model.h"

namespace affpcl {

FitResult fit_stream(const Frame& frame, const FitOptions& options);

}  // namespace affpcl
