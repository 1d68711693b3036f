// Options of the exact solver.
#pragma once

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
};

struct MixedOptions {
  DecompositionOptions decomposition = {};  // all rows; its start is not used
  double fold_tolerance = 1e-3;             // evidence_tolerance of the folds, which start from it
};

}  // namespace affpcl
