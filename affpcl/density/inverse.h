// A generalised inverse of a Gram matrix without allocation.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

// W (p x p, row major) with G W G = G up to the cutoff, and the rank found. Cholesky with pivots on
// G scaled to a unit diagonal, plus `ridge` times it: directions in which less than a share of
// 1e-10 of a feature is left are without data and get 0. Any generalised inverse gives the same
// psi' W V at samples that G has seen, so this one serves as well as the pseudo-inverse and costs a
// fraction.
int generalised_inverse(const double* G, int p, double ridge, Scratch& scratch, double* W);

}  // namespace affpcl
