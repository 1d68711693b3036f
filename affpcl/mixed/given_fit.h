// The models of agents whose moments and law are given: no rows are asked.
#pragma once

#include <memory>

#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/options.h"
#include "affpcl/table/folds.h"

namespace affpcl {

struct GivenMoments {
  Moments own;       // of each agent, for its independent model
  Moments together;  // of all agents as one, for the pooled model
  Learnt learnt;     // with the moments that it was learnt from
};

// Of targets that are one channel. It has no likelihood.
std::unique_ptr<FoldFit> given_fit(const Frame& frame, const MixedOptions& options,
                                   GivenMoments given);

}  // namespace affpcl
