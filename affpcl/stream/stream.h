// The stream solver: one model per agent in one pass over the rows, by stochastic approximation.
// Any method of the catalogue runs beside the independent and the pooled baseline on the same
// samples. Every row is predicted before it is learnt from, and these predictions are the score.
// The model that an agent's recent rows support is the chosen one.
//
// It runs in coordinates in which the columns of all rows together have covariance I, so that one
// step size suits all directions: alpha_t = 2 / (t + t0) with the first step half of what the
// largest rows allow (docs/explain/fit.md).
#pragma once

#include "affpcl/stream/options.h"
#include "affpcl/table/solver.h"

namespace affpcl {

class StreamSolver final : public Solver {
 public:
  explicit StreamSolver(const StreamOptions& options) : options_(options) {}
  bool looks_for_stop() const override { return true; }
  RowOrder row_order() const override { return RowOrder::kAsTheyCame; }
  // Every process reads all rows, and learns those of its own agents.
  Frame read(const FrameOptions& options, Team& team) override;
  Fitted solve(Frame& frame, const FitRun& run) override;

 private:
  StreamOptions options_;
};

}  // namespace affpcl
