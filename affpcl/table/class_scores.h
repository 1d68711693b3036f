// How well probabilities tell classes apart (AUC), and how far they can be believed (calibration):
// counts of held-out rows that add up over agents, threads and ranks. docs/explain/fit.md, "Scores
// of classes".
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"

namespace affpcl {

// The squared error of the probabilities: of the second of two classes, else summed over classes.
double brier_score(std::span<const double> p, std::size_t truth);

// Counts of one model's rows. Each number is a multiple of `unit`, so that sums are exact and have
// the same bits in any order.
class ClassCounts {
 public:
  static constexpr std::size_t kBins = 4000;           // of the logit, equally wide
  static constexpr double kFarthest = 20;              // the logit where they end
  static constexpr std::size_t kCalibrationBins = 10;  // of a probability, equally wide
  static constexpr std::size_t kMostConfused = 40;     // classes with a confusion matrix

  // A power of two, small beside weights that add up to `total`.
  static double unit_of(double total);
  ClassCounts(std::size_t classes, double unit);

  void add(std::span<const double> p, std::size_t truth, double weight);
  std::span<double> numbers() { return numbers_; }  // all of them, to be added up

  // The probability that a row of the class has a larger probability of it than a row of another
  // class, ties counting half; of more than two classes the mean over them. NaN where no class and
  // its rest have rows. Rows in one bin count as tied, so it is off by at most auc_error().
  double auc() const;
  double auc_error() const;
  // Of the second of two classes, of more of the most probable one.
  std::vector<CalibrationBin> calibration() const;  // those with rows
  double calibration_error() const;       // mean |predicted - observed| over rows, bin by bin
  std::vector<double> confusion() const;  // [truth][most probable]; empty for many classes

 private:
  std::size_t curves() const { return classes_ == 2 ? 1 : classes_; }
  std::size_t confused() const { return classes_ <= kMostConfused ? classes_ * classes_ : 0; }
  std::size_t calibrated_from() const { return curves() * kBins * 2; }
  double rounded(double v) const;
  struct Auc {
    double value, error;
  };
  Auc curve() const;

  std::size_t classes_;
  double unit_;
  // [curves][bins][rows of the class, other rows], then
  // [calibration bins][weight, predicted, observed], then [truth][most probable].
  std::vector<double> numbers_;
};

// The counts of the chosen model and of the three it is made of; each thread has its own.
class ClassTally {
 public:
  static constexpr std::size_t kModels = 4;  // another, then in the order of Kind

  // Rows without classes are not counted.
  ClassTally(const Frame& frame, int repeats, Team& team);
  bool counts() const { return classes_ > 0; }
  void add(int worker, std::size_t model, std::span<const double> p, std::size_t row);
  // Of all threads and ranks; `chosen` is the chosen one of the four.
  ClassScores scores(std::size_t chosen, Team& team);

 private:
  const Frame& frame_;
  std::size_t classes_;
  std::vector<std::vector<ClassCounts>> models_;  // by worker; empty until it counts
  double unit_ = 1;
};

}  // namespace affpcl
