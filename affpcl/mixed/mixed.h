// The exact solver: a linear mixed model with the agents' coefficients as random effects, beside
// its baselines, an independent ridge regression per agent and a pooled one.
#pragma once

#include <memory>
#include <vector>

#include "affpcl/mixed/decomposition.h"
#include "affpcl/mixed/glmm_solver.h"
#include "affpcl/mixed/levels_solver.h"
#include "affpcl/mixed/options.h"
#include "affpcl/table/folds.h"

namespace affpcl {

class MixedSolver final : public FoldedSolver {
 public:
  // centre: nothing is learnt but each agent's own model, from a centre that was learnt without it. The
  // pooled model is then the centre's of an unseen agent.
  explicit MixedSolver(const MixedOptions& options, std::shared_ptr<const Model> centre = nullptr)
      : options_(options),
        centre_(centre),
        generalised_({.approximation = options.approximation,
                      .covariance = options.covariance,
                      .centre = centre.get()}),
        leveled_(options.estimate != EstimateChoice::kMl) {}
  std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team) override;

 private:
  std::unique_ptr<FoldFit> join(const Frame& frame, int without, Team& team) const;

  MixedOptions options_;
  std::shared_ptr<const Model> centre_;
  std::vector<Variances> found_;                     // in all rows, by channel
  std::vector<std::shared_ptr<const Learnt>> near_;  // likewise; folds start from it
  std::vector<double> correlations_;  // of successive rows' errors, by channel; 0: none found
  std::vector<char> misled_;          // by channel: agents' own noise makes predictions worse
  GlmmSolver generalised_;            // instead, where the family is no linear model's
  LevelSolver leveled_;               // instead, where there is a second factor
};

// Scores predictions that are a number per channel, in units of the target.
std::unique_ptr<RowScorer> channel_scorer(const Frame& frame);

}  // namespace affpcl
