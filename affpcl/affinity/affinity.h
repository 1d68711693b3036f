// How alike the agents are, and what collaboration can be expected to gain: the paper's scores
// (def:r-aff, def:k-aff, def:noise, sec:asa) and, as the prediction to look at, the variance ratio
// at the solution. Exact where a problem is finite or has a closed form, otherwise Monte Carlo with
// its standard error; null with the reason where there is no finite value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/problem/problem.h"

namespace affpcl {

struct Score {
  double value = 0;
  double se = 0;    // standard error; 0: exact
  std::string why;  // why there is no value; empty if there is one
};

struct AgentAffinity {
  Score delta_cen;  // max{TV(mu^i, mu^0), |bbar^i - bbar^0| / (2 G_b)}
  Score lambda;     // of sym(Abar^i)
  Score kappa;      // sigma / lambda^i
  Score nu;         // |Dbar^i (Abar^i)^-1|
  // V^i = E gtilde^i'L gtilde^i / E g^i'L g^i at (x^i_*, x^c_*, theta^c_*), Abar'L + L Abar = I:
  // the ratio of errors that small constant steps leave
  Score prediction;
};

struct Affinity {
  Score delta_env, delta_obj;  // largest pairwise distances
  Score G_b, G_A, G_x, sigma;  // the system's scale
  Score lambda_central, lambda_objective, nu;
  Score step_limit;  // the largest constant step at which every agent alone is stable (stability.h)
  std::vector<AgentAffinity> agents;
};

struct AffinityOptions {
  std::uint64_t seed = 1;
  int rounds = 1000;  // Monte Carlo rounds where they are needed
};

// Needs a problem with known means and densities.
Affinity affinity(const Problem& problem, const AffinityOptions& options);

}  // namespace affpcl
