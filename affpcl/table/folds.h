// Solvers that learn from all rows at once, scored by repeated cross-validation within agents. Such
// a solver says how to learn from the rows outside one fold; what is done with the folds is the same
// for all: the weights of each agent's three models (stack.h), the losses on held-out rows, and the
// combined model from all rows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "affpcl/table/solver.h"

namespace affpcl {

// Losses of combinations of an agent's three predictions of a row. Models are combined on the scale
// of the linear predictor. It outlives the fit that made the predictions.
class RowScorer {
 public:
  virtual ~RowScorer() = default;
  // Numbers that predict one row by one model.
  virtual std::size_t width() const = 0;
  // Losses of the combinations with these weights; `predictions` is [Kind][width].
  virtual void losses(std::size_t agent, std::size_t row, const double* predictions,
                      std::span<const ByKind<double>> weights, RowLoss* out) const = 0;
  // How far the independent model is from the combination with these weights, whose losses these are.
  virtual ModelGap apart(std::size_t agent, std::size_t row, const double* predictions,
                         const ByKind<double>& weights, const RowLoss& chosen,
                         const RowLoss& independent) const {
    ByKind<double> half = weights;
    for (double& w : half) w /= 2;
    half[static_cast<std::size_t>(Kind::kIndependent)] += 0.5;
    RowLoss middle;
    losses(agent, row, predictions, {&half, 1}, &middle);
    return parabola(chosen, independent, middle);
  }
  // Probabilities of the classes by the combination with these weights.
  virtual std::vector<double> probabilities(const double* predictions,
                                            const ByKind<double>& weights) const = 0;
  // What the combination with these weights predicts of a target without classes, in its units.
  virtual double predicted(std::size_t agent, std::size_t row, const double* predictions,
                           const ByKind<double>& weights) const = 0;
  // The squared distance of a combination's linear predictors to the independent model's, in units
  // of the target.
  virtual double distance(std::size_t agent, const double* predictions,
                          const ByKind<double>& weights) const = 0;
};

// An agent's three models, learnt from the same rows; results are in the order of Kind.
class AgentFit {
 public:
  virtual ~AgentFit() = default;
  // Predictions of rows [from, to) of the frame, [row][Kind][RowScorer::width].
  virtual void predict(std::size_t from, std::size_t to, double* out) const = 0;
  // Fills in the coefficients of the combination with these weights and what belongs to them, in
  // units of the target, and its covariances.
  virtual void describe(const ByKind<double>& weights, AgentModel& agent) const = 0;
  // Where FoldFit::samples(): how far the independent model is from the combination with these weights
  // on new rows Z [d][count], and the mean square of the combination's error along their difference, as
  // the personalised model has it. [from, to) are the agent's own rows, which have its offsets.
  virtual void compare(const ByKind<double>& /*weights*/, const Matrix& /*Z*/, std::size_t /*from*/,
                       std::size_t /*to*/, RowTally& /*tally*/) const {}
};

// Everything learnt from the rows outside one fold, or from all rows.
class FoldFit {
 public:
  virtual ~FoldFit() = default;
  // Called by several threads at once, for agents of this process.
  virtual std::unique_ptr<AgentFit> agent(std::size_t agent) const = 0;
  virtual std::unique_ptr<RowScorer> scorer() const = 0;
  // Whether a gap of two models has to be found on new rows: losses are no squared errors.
  virtual bool samples() const { return false; }
  // Fills in what all agents share. The agents of this process are in the model already.
  virtual void describe(Model& model, Team& team) const = 0;
  // What the user should know of the fit, a sentence each.
  virtual std::vector<std::string> notes() const = 0;
};

class FoldedSolver : public Solver {
 public:
  RowOrder row_order() const final { return RowOrder::kInFolds; }
  Fitted solve(Frame& frame, const FitRun& run) final;

  // Learns from the rows outside fold `without`, first of all from kAllRows: what that found may be
  // where the others start. The frame outlives the result, but deals its rows anew for every repeat.
  virtual std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team) = 0;
};

// The combination of models with these weights. Its covariance is that of a mixture: the mean of the
// models' covariances and the covariance of their coefficients, so that models which disagree make
// it less sure.
LinearModel combined(const ByKind<LinearModel>& models, const ByKind<double>& weights);

}  // namespace affpcl
