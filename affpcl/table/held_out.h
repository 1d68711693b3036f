// How rows are held out to score models.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace affpcl {

inline constexpr int kFolds = 5;  // unless a column names the rows' folds
inline constexpr int kMostFolds = 50;
inline constexpr int kAllRows = -1;  // instead of a fold: no row is held out

enum class Holdout {
  kDealt,    // each fold in turn; rows are dealt into folds at random
  kNamed,    // the same; a column names the folds
  kForward,  // folds are blocks in time: each but the first is predicted from those before it
};

struct HeldOut {
  Holdout how = Holdout::kDealt;
  int folds = kFolds;
  std::string column = {};              // of folds or of times
  std::vector<std::string> files = {};  // of test rows, which are then those that are scored
};

}  // namespace affpcl
