// The coefficients of agents and the effects of levels given all rows: best linear unbiased
// predictions, and how sure they are.
#pragma once

#include "affpcl/mixed/levels.h"

namespace affpcl {

// Covariances include the uncertainty of x_c and of the variances (Prasad and Rao 1990); those that
// are called known take the variances as known.
class LevelPosteriors {
 public:
  // At the point of the evidence's last value.
  LevelPosteriors(const LevelEffects& effects, LevelEvidence& evidence);

  struct Agent {
    Vector x;
    Matrix cov, known;
    Matrix cross;  // [cells][d]: covariance with the effect of each of its levels, known
  };
  Agent agent(std::size_t agent) const { return posterior(agent, 1); }    // x_c + u_i
  Agent effects(std::size_t agent) const { return posterior(agent, 0); }  // u_i

  double effect(std::size_t level) const { return e_.level_effects()[level]; }
  double known(std::size_t level) const { return e_.level_cov(level, level); }
  double variance(std::size_t level) const;

 private:
  // times x_c + u_i
  Agent posterior(std::size_t agent, double times) const;

  const LevelEvidence& e_;
  Matrix variance_cov_;      // [d][d]: of the estimated D, by coefficient
  double tau_variance_ = 0;  // of the estimated tau^2
};

}  // namespace affpcl
