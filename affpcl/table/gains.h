// Gains of agents by empirical Bayes (adaptive shrinkage, Stephens 2017): held-out rows say roughly
// how the chosen model of an agent errs towards its independent one, all agents together say how far
// such errors go, and the gain of the two models in hand follows. docs/explain/fit.md, "Gains".
#pragma once

#include <array>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/score.h"

namespace affpcl {

// One agent's held-out rows: means over rows. See RowTally.
struct GainEvidence {
  double rows = 0;
  double gap = 0, norm = 0, slope = 0, slope2 = 0;
  ModelGap in_hand;   // of the two models from all rows
  double vague = 0;   // standard deviation of its logarithm
  double unsure = 0;  // variance of slope / sqrt(norm) that the chosen model itself states; or NaN
  double stated = 0;  // slope2 / norm that goes with it: the noise that the model knows of
};

struct ShrunkGain {
  Estimate gain;           // posterior mean and equal-tailed interval
  double probability = 0;  // that the gain is above 0
};

// Of the agents of this process; `all` agents are shared by the team. `freedom` is the number of
// coefficients of an independent model, `level` the intervals' coverage. learn: the law of errors is
// learnt from these agents; else it is its prior, as for a few agents that say nothing of all.
std::vector<ShrunkGain> shrink_gains(const std::vector<GainEvidence>& own, double freedom,
                                     std::size_t all, Team& team, double level = kConfidence,
                                     bool learn = true);

// Parts of it, to be tested.

// Noise variances of agents shrunk towards each other: s2 is a mean square of `rows` numbers, and the
// agents' variances have an inverse gamma law worth `prior_rows` rows around `typical`.
struct SharedVariance {
  double typical = 0, prior_rows = 0;
  double of(double s2, double rows) const {
    return (prior_rows * typical + rows * s2) / (prior_rows + rows);
  }
};
SharedVariance share_variances(const std::vector<double>& s2, const std::vector<double>& rows,
                               std::size_t all, Team& team);  // an agent without rows says nothing

// Systematic errors have a law: a mixture of normals with one mean, in units of what the rows of an
// agent resolve. The components' variances are fixed; the first is no error but the mean. Beside the
// agents, the shares have a Dirichlet prior of these many agents' worth: of the first, and of all.
inline constexpr std::array kErrorComponents = {0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0};
inline constexpr double kNoError = 2, kAnyError = 1;
struct ErrorLaw {
  double mean = 0;
  std::vector<double> shares;  // of the components
};
struct NoisyError {
  double value = 0, noise = 0;  // and the variance of its noise; infinite: nothing is known
  double resolution = 1;        // the variance that makes the unit
};
ErrorLaw learn_errors(const std::vector<NoisyError>& errors, std::size_t all, Team& team);

}  // namespace affpcl
