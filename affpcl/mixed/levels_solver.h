// The exact solver of a table with a second factor: the mixed model of levels.h beside the same
// baselines as without one.
#pragma once

#include <memory>
#include <optional>

#include "affpcl/mixed/levels.h"
#include "affpcl/table/folds.h"

namespace affpcl {

// Levels of a crossed factor, whose system is dense: memory grows with their square, time with
// their cube.
inline constexpr std::size_t kMostCrossedLevels = 5000;

class LevelSolver {
 public:
  explicit LevelSolver(bool restricted) : restricted_(restricted) {}
  // As FoldedSolver::learn.
  std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team);

 private:
  bool restricted_;
  std::optional<LevelDecomposition> found_;  // in all rows
};

}  // namespace affpcl
