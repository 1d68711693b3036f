// From noised moments to moments that the climb takes: equivalent ones, which say of each agent's
// coefficients what the noised ones say, noise and all. docs/explain/privacy.md derives them.
#pragma once

#include "affpcl/runtime/team.h"
#include "affpcl/table/moments.h"
#include "affpcl/table/release.h"

namespace affpcl {

// Of the prior of x_c. Target and columns lie in [-1, 1]: so does what d coefficients of that size predict, about.
inline double bounded_precision(std::size_t d) { return static_cast<double>(d); }

class PrivateMoments {
 public:
  // `noise` is the standard deviation of that on every moment; `first` the place of the release's
  // agents among all `agents`. BadInput where the noise leaves no rows.
  PrivateMoments(const Release& release, double noise, std::size_t first, std::size_t agents,
                 Team& team);

  // Positive semidefinite moments of each agent: what its rows say alone.
  const Moments& own() const { return own_; }
  // Of all agents together, likewise.
  const Moments& together() const { return together_; }
  // Equivalent moments. spread: the trace of D; coefficients far from 0 let more noise in.
  Moments equivalent(double spread, Team& team) const;
  double rows() const { return together_.rows[0]; }

 private:
  double noise_;
  Moments raw_;  // b and y'y with noise; A shrunk towards rows times the mean of all agents'
  Moments own_, together_;
  std::vector<double> centre_;  // a rough x_c
  double s2_ = 1;
};

}  // namespace affpcl
