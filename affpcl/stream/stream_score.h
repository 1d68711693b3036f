// The running score of a stream: the losses of an agent's three models on rows that were predicted
// before they were learnt from, and the model that the recent ones support.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/runtime/run.h"
#include "affpcl/table/solver.h"

namespace affpcl {

// The method and its baselines on the same samples, in the order of Kind.
std::vector<RunMethod> with_baselines(const std::string& method,
                                      const std::map<std::string, Value>& values,
                                      const StepSizes& step);

// Sums over roughly the second half of the numbers so far: those before the last two powers of two
// are forgotten, since a model that was ahead at first may fall behind.
class Recent {
 public:
  void add(double v);
  Paired all() const;

 private:
  Paired before_, now_;
  double until_ = 16;
};

struct StreamScore {
  // `middle` is the loss halfway between the chosen model and the independent one.
  void add(const ByKind<RowLoss>& losses, const RowLoss& middle, double y);

  RowTally tally;
  Recent than_independent, than_pooled;
  ByKind<Recent> losses;  // by Kind
  Kind kind = Kind::kPersonalised;
};

// Steps through the rows, unless the run is stopped: step(t) predicts every agent's row t and then
// learns from it.
void one_pass(std::int64_t steps, const FitRun& run, FunctionRef<void(std::int64_t)> step,
              Fitted& fitted);

// The agents of this process, of so many.
Leaves own_agents(const Run& run, std::size_t agents);
// Gathers the scores of all agents to rank 0.
void gather_scores(Leaves own, Processes& processes, std::vector<StreamScore>& scores);

// The solutions of all agents, on rank 0; made by all processes once a run is over.
class Solutions {
 public:
  Solutions(const Run& run, std::size_t agents, Processes& processes);
  std::vector<double> operator()(Kind kind, std::size_t agent) const;

 private:
  std::size_t d_;
  ByKind<std::vector<double>> x_;  // [agents][d]; of the pooled model [d]
};

std::vector<RowTally> tallies(const std::vector<StreamScore>& scores);

}  // namespace affpcl
