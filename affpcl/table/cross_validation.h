// Repeated cross-validation of a FoldedSolver: the losses on held-out rows, and the weights of each
// agent's three models.
#pragma once

#include <vector>

#include "affpcl/table/folds.h"

namespace affpcl {

// The weights of this process's agents: the personalised models' where nothing is scored. `all` has
// learnt from all rows. Fills in the scores of the held-out rows, or of the test rows where there are
// any. It deals the frame's rows anew for every repeat.
std::vector<ByKind<double>> cross_validate(Frame& frame, FoldedSolver& solver, const FoldFit& all,
                                           const FitRun& run, Fitted& fitted);

}  // namespace affpcl
