// Correlated errors of an agent's successive rows, as of a season that columns do not show. Rows in
// time have errors of an AR(1) process: cov(e_s, e_t) = s^2 r^|s - t|, s and t places in the order of
// time. docs/explain/fit.md, "Rows in time".
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/mixed/decomposition.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/frame.h"

namespace affpcl {

// Whether residuals of successive rows go together more than those of any two rows of an agent. The
// expectation and the variance are those of the residuals in a random order, so the noise may be
// heavy-tailed and differ between agents.
struct SerialTest {
  double correlation = 0;  // of successive residuals, beyond that of a random order
  double z = 0;            // standard normal without correlation
  bool found() const;      // false alarms: 1 %
};
SerialTest test_serial(const Frame& frame, std::size_t channel,
                       FunctionRef<std::vector<double>(std::size_t)> coefficients, Team& team);

// X'R^-1 X and so on of rows in time, R the errors' correlations.
Moments moments_in_time(const Frame& frame, std::size_t channel, int without, double correlation,
                        Team& team);
// log |R^-1/2| of all agents' rows.
double log_whitening(const Moments& moments, double correlation, Team& team);

// The correlation r with the largest evidence; 0 unless a likelihood-ratio test rejects 0 (false
// alarms: 5 %). It finds more than the residuals do: these are what coefficients left over.
double most_evident_correlation(const Frame& frame, std::size_t channel,
                                const DecompositionOptions& options, Team& team);

}  // namespace affpcl
