// Options of the exact solver.
#pragma once

#include <array>
#include <string_view>

#include "affpcl/base/params.h"

namespace affpcl {

struct Variances;

struct DecompositionOptions {
  double tolerance = 1e-9;        // largest relative change of a variance in the last step
  double evidence_tolerance = 0;  // a step that gains no more is the last one
  int iterations = 200;           // at most, for each form of D
  // x_c has a prior N(0, I / centre_precision). Columns and target are standardised, so 0.01 only
  // says that a coefficient is hardly above ten; it settles what the rows leave open.
  double centre_precision = 0.01;
  bool scalar = true, diagonal = true, full = true;  // forms of D to compare
  const Variances* start = nullptr;  // a guess, such as that of nearly the same rows
  bool plain = false;                // the same noise for all, no outlying agents
  bool own_noise = true;   // false: the same without the priors that `plain` leaves out too
  bool restricted = true;  // REML: the evidence integrates x_c out; ML: x_c at its best value
};

// The forms of D that a fit uses.
enum class CovarianceChoice { kAverage, kScalar, kDiagonal, kFull };
template <>
struct EnumNames<CovarianceChoice> {
  static constexpr std::array<std::string_view, 4> all = {"average", "scalar", "diagonal", "full"};
};

// How the random effects of classes are integrated out (glmm_evidence.h).
enum class Approximation { kAuto, kLaplace, kVariational };
template <>
struct EnumNames<Approximation> {
  static constexpr std::array<std::string_view, 3> all = {"auto", "laplace", "variational"};
};

// The forms that options, of either kind of model, then compare.
template <class Options>
void choose_forms(CovarianceChoice choice, Options& options) {
  if (choice == CovarianceChoice::kAverage) return;
  options.scalar = choice == CovarianceChoice::kScalar;
  options.diagonal = choice == CovarianceChoice::kDiagonal;
  options.full = choice == CovarianceChoice::kFull;
}

// Whether variances maximise the likelihood or the restricted one.
enum class EstimateChoice { kAuto, kMl, kReml };
template <>
struct EnumNames<EstimateChoice> {
  static constexpr std::array<std::string_view, 3> all = {"auto", "ml", "reml"};
};

struct MixedOptions {
  CovarianceChoice covariance = CovarianceChoice::kAverage;
  EstimateChoice estimate = EstimateChoice::kAuto;
  bool plain = false;
  Approximation approximation = Approximation::kAuto;
  DecompositionOptions decomposition = {};  // all rows; its start is not used
  double fold_tolerance = 1e-3;             // evidence_tolerance of the folds, which start from it

  static const Params<MixedOptions>& params();
};

}  // namespace affpcl
