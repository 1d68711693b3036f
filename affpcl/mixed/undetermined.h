// Coefficients of the centre that the rows leave open: of columns that are collinear over all rows,
// such as 0/1 columns that sum to 1. Predictions for rows like these do not depend on them.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/math/dense.h"

namespace affpcl {

// `covariance` is the posterior one of x_c, whose prior is N(0, I / precision). The rows leave a
// direction open where they take less than half of the prior variance away. In rising order.
std::vector<std::size_t> undetermined(MatrixView covariance, double precision);

}  // namespace affpcl
