// How far the predictions of two models of a family are apart, in units of its loss.
#pragma once

#include <span>

#include "affpcl/mixed/family.h"
#include "affpcl/table/class_divergence.h"

namespace affpcl {

// Of one row's expected targets, or of the probabilities of its classes: all losses here are linear in
// the outcome once the predictions are given.
Divergence divergence(const Likelihood& likelihood, std::span<const double> psi,
                      std::span<const double> from, std::span<const double> to);

}  // namespace affpcl
