// Solvers that learn from all rows at once, scored by cross-validation within agents. Such a solver
// says how to learn from the rows outside one fold; what is done with the folds is the same for
// all: the model from all rows, the model chosen for each agent, the losses on held-out rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/table/solver.h"

namespace affpcl {

inline constexpr int kAllRows = -1;  // instead of a fold: no row is held out

// An agent's three models, learnt from the same rows; results are in the order of Kind.
class AgentFit {
 public:
  virtual ~AgentFit() = default;
  // Errors on each of the rows it was learnt from, as if that row had been held out: the smaller
  // the better. They choose the agent's model.
  virtual std::vector<ByKind<double>> leave_one_out() const = 0;
  // Losses on rows [from, to) of the frame, which are held out.
  virtual std::vector<ByKind<RowLoss>> losses(std::size_t from, std::size_t to) const = 0;
  // Fills in the chosen model's coefficients and what belongs to them, in units of the target.
  virtual void describe(Kind chosen, AgentModel& agent) const = 0;
};

// Everything learnt from the rows outside one fold, or from all rows.
class FoldFit {
 public:
  virtual ~FoldFit() = default;
  // Called by several threads at once, for agents of this process.
  virtual std::unique_ptr<AgentFit> agent(std::size_t agent) const = 0;
  // Fills in what all agents share. The agents of this process are in the model already.
  virtual void describe(Model& model, Team& team) const = 0;
  // What the user should know of the fit, a sentence each.
  virtual std::vector<std::string> notes() const = 0;
};

class FoldedSolver : public Solver {
 public:
  Parallel parallel() const final { return Parallel::kProcesses; }
  RowOrder row_order() const final { return RowOrder::kInFolds; }
  Fitted solve(const Frame& frame, const FitRun& run) final;

  // Learns from the rows outside fold `without`, first of all from kAllRows: what that found may be
  // where the others start. The frame outlives the result.
  virtual std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team) = 0;
};

// The numbers of all agents' covariances are kept where they are not too many.
bool keeps_covariances(const Frame& frame);

}  // namespace affpcl
