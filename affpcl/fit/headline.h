// What a fit says in one sentence. Computed here alone, so that the terminal, summary.json and the
// page agree.
#pragma once

#include <string>

#include "affpcl/fit/fit.h"

namespace affpcl {

std::string headline(const FitResult& result);

// "0.98 [0.95, 1.02]", or the mean alone where there is no interval.
std::string with_interval(const Estimate& estimate);

}  // namespace affpcl
