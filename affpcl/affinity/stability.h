// How large a constant step may be: learning alone, x -= alpha (A(s) x - b(s)), forgets its start
// in mean square exactly if the spectral radius of E[(I - alpha A) (x) (I - alpha A)] is below 1.
// Beyond that its mean squared error grows without bound, even where the mean of x converges.
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/math/dense.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

// The largest stable step of every agent. E[A (x) A] is a finite sum where the problem is finite,
// otherwise a mean over `draws` samples. For at most 10 unknowns; needs means.
std::vector<double> stable_steps(const Problem& problem, std::uint64_t seed, int draws);

// L with Abar'L + L Abar = I: the error of small constant steps whose noise has covariance S is
// alpha tr(L S). Empty where a solution of x' = -Abar x does not go to 0.
Matrix error_metric(MatrixView Abar);

}  // namespace affpcl
