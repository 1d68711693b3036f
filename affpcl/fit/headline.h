// What a fit says in one sentence. Computed here alone, so that the terminal, summary.json and the
// page agree.
#pragma once

#include <string>

#include "affpcl/fit/fit.h"

namespace affpcl {

std::string headline(const FitResult& result);

}  // namespace affpcl
