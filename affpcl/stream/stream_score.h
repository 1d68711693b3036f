// What a stream remembers of an agent: the losses of the three models on rows that were predicted
// before they were learnt from, and which of the models the recent ones speak for.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "affpcl/runtime/run.h"
#include "affpcl/table/score.h"

namespace affpcl {

// The method and its twins on the same samples, in the order of Kind.
std::vector<RunMethod> with_baselines(const std::string& method,
                                      const std::map<std::string, Value>& given,
                                      const StepSizes& step);

// Of the second half of the numbers so far, roughly: what came before the last two powers of two is
// forgotten, for a model that was ahead at first may fall behind.
class Recent {
 public:
  void add(double v);
  Paired all() const;

 private:
  Paired before_, now_;
  double until_ = 16;
};

struct StreamScore {
  void add(const std::array<RowLoss, 3>& losses, double y);

  RowTally tally;
  Recent than_alone, than_pooled;
  std::array<Recent, 3> losses;  // by Kind
  Kind kind = Kind::kPersonalised;
};

std::vector<RowTally> tallies(const std::vector<StreamScore>& followers);

}  // namespace affpcl
