// One model per agent from the user's tables, and what collaboration gained each agent on held-out
// rows.
#pragma once

#include "affpcl/fit/options.h"

namespace affpcl {

struct Tables;

// Of agents that join a centre: with its columns. BadInput where it cannot be joined, or where options
// contradict it.
FitOptions with_centre(FitOptions options);

// Several processes may share an exact fit; only rank 0 has the result.
FitResult fit(const FitOptions& options);
// The same for tables in memory; the encoding says what each column is.
FitResult fit(Tables tables, Encoding encoding, const FitOptions& options);

}  // namespace affpcl
