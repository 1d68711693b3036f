// Held-out rows by prediction and target, and by residual: whole counts, which add up over agents,
// threads and ranks without rounding.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"

namespace affpcl {

struct Frame;

// The counts of the chosen model and of the three it is made of; each thread has its own.
class PredictionTally {
 public:
  static constexpr std::size_t kModels = 4;   // as ClassTally
  static constexpr std::size_t kCells = 24;   // a side of the grid
  static constexpr std::size_t kFine = 2400;  // bins of residuals, before they are joined
  static constexpr std::size_t kBins = 40;    // about so many, joined
  static constexpr double kFarthest = 3;      // standard deviations of the target, either side

  // Rows with classes or trials are not counted, nor those of sites that are apart: the counts would
  // be one more thing that they show of their rows.
  PredictionTally(const Frame& frame, Team& team);
  bool counts() const { return sd_ > 0; }
  void add(int worker, std::size_t model, double predicted, double found);
  // Of all threads and ranks, of the chosen one of the four.
  PredictionCounts counted(std::size_t chosen, Team& team) const;

 private:
  double mean_ = 0, sd_ = 0;  // of the target, over the rows that are learnt from
  std::vector<std::vector<double>>
      workers_;  // [model][grid, then fine bins]; empty until it counts
};

}  // namespace affpcl
