// Small dense systems. The one place that includes Eigen is dense.cc.
#pragma once

#include <span>
#include <vector>

namespace affpcl {

// The x of least norm among those that minimise |A x - b|; A is square, row major. Singular values
// below 1e-12 of the largest count as 0.
std::vector<double> solve_least_norm(std::span<const double> A, std::span<const double> b);

}  // namespace affpcl
