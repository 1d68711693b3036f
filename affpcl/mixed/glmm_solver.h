// The exact solver of families other than gaussian: a generalised linear mixed model beside its
// penalised baselines.
#pragma once

#include <memory>

#include "affpcl/mixed/glmm.h"
#include "affpcl/mixed/options.h"
#include "affpcl/table/folds.h"

namespace affpcl {

struct GlmmSolverOptions {
  Approximation approximation = Approximation::kAuto;
  double fold_tolerance = 1e-3;  // of the folds, which start from all rows
  CovarianceChoice covariance = CovarianceChoice::kAverage;  // that is, the smallest BIC
  const Model* centre = nullptr;  // learnt without the agents, as MixedSolver has it
};

class GlmmSolver {
 public:
  explicit GlmmSolver(const GlmmSolverOptions& options) : options_(options) {}
  // As FoldedSolver::learn.
  std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team);

 private:
  GlmmSolverOptions options_;
  Glmm found_;          // in all rows
  bool bound_ = false;  // by the variational bound
};

// A frame's rows without those of a fold.
GlmmRows glmm_rows(const Frame& frame, int without, Team& team);

}  // namespace affpcl
