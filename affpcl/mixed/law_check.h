// Whether noise variances of agents and outlying agents (mixed/agent_law.h) help predictions: learnt
// from the rows outside each fold, with D and the law as they are, the rows inside say. A model that
// misses a curve makes agents look less noisy where they lie on it by chance.
#pragma once

#include "affpcl/mixed/learnt.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// True: one noise variance for all and no outlying agents predict held-out rows clearly better.
// `learnt` is of all rows, whose moments are `all`.
bool law_misleads(const Frame& frame, std::size_t channel, const Moments& all, const Learnt& learnt,
                  Team& team);

}  // namespace affpcl
