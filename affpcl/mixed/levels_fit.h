// The mixed model of a frame with a second factor, learnt from the rows outside one fold.
#pragma once

#include <optional>

#include "affpcl/mixed/levels_posterior.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// Where two factors cross and both have intercepts alone, either may be eliminated first. The one
// with more levels is: the system of the other is the smaller one.
class LevelFit {
 public:
  // start: what all rows found; nullptr: these are all rows.
  LevelFit(const Frame& frame, const Moments& moments, int without, const LevelDecomposition* start,
           bool restricted, Team& team);

  // Of a crossed factor: the levels in the dense system.
  static std::size_t system_size(const Frame& frame);

  const std::vector<LevelDecomposition>& tried() const { return tried_; }  // the best comes first
  const LevelDecomposition& best() const { return tried_[0]; }
  const std::vector<std::size_t>& random() const { return random_; }  // coefficients
  const Vector& centre() const { return evidence_->centre(); }
  const Matrix& centre_cov() const { return evidence_->centre_cov(); }
  bool restricted() const { return restricted_; }
  double rows() const { return evidence_->rows(); }
  double log_likelihood() const;  // the evidence without the prior of x_c

  struct Agent {
    Vector x;
    Matrix cov;
  };
  Agent agent(std::size_t agent) const;
  // Of nested factors: the level that an agent lies within, and the covariance with its effect.
  std::size_t level_of(std::size_t agent) const;
  Vector level_cov(std::size_t agent) const;

  struct Effect {
    double value = 0, variance = 0;
  };
  Effect level(std::size_t level) const;

 private:
  LevelDecomposition turned(LevelDecomposition found) const;

  std::vector<std::size_t> random_;
  std::size_t agents_;
  bool restricted_;
  bool swapped_;      // levels were eliminated first
  Moments by_level_;  // where they were
  const Moments& moments_;
  LevelCells cells_;
  std::optional<LevelEvidence> evidence_;
  std::vector<LevelDecomposition> tried_;
  std::optional<LevelPosteriors> posteriors_;
};

}  // namespace affpcl
