// One model per agent from the user's tables, and what collaboration gained each agent on held-out
// rows.
#pragma once

#include "affpcl/table/model.h"

namespace affpcl {

// Reads the tables, makes a frame of them, and solves. Several processes share an exact fit; only
// the first has the result.
FitResult fit(const FitOptions& options);
// The same for tables in memory; the encoding says what each column is.
FitResult fit(Tables tables, Encoding encoding, const FitOptions& options);

}  // namespace affpcl
