// Agents that are noisier than others. Agent i's noise has variance s_i^2, log s_i^2 ~ N(m, t^2)
// with m and t learnt; t = 0, the same noise for all, unless the evidence is clearly for more.
// Dividing an agent's moments by s_i^2 / s^2 gives all agents the same noise, so the decomposition
// stays as it is. docs/explain/fit.md derives it.
#pragma once

#include <vector>

#include "affpcl/mixed/decomposition.h"

namespace affpcl {

// A decomposition, and the noise of each agent beside it.
struct Learnt {
  Chosen chosen;
  Moments moments;            // those that chosen.best is of: divided by noise
  std::vector<double> noise;  // s_i^2 / s^2, by agent; right for those whose moments are here
};
Learnt decompose_with_noise(const Moments& moments, const DecompositionOptions& options,
                            Team& team);

// The factors that `moments` support, with the decomposition learnt so far; empty where one noise
// for all suffices.
std::vector<double> noise_factors(const Moments& moments, const Learnt& learnt, Team& team);

}  // namespace affpcl
