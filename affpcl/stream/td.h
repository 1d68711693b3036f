// Values of states, one set per agent, from a log of transitions: TD(0) in one pass
// (problem/td_log.h), beside learning alone and one set for all. The score is the squared
// temporal-difference error of rows before they are learnt from, the only error a log shows: it
// holds the noise of rewards and of transitions, so differences between models are small parts of
// it.
#pragma once

#include "affpcl/table/model.h"

namespace affpcl {

FitResult fit_td(const FitOptions& options);  // options.td

}  // namespace affpcl
