// How far apart the agents' columns lie, before any target is looked at: lower bounds on total
// variation. For every set B, TV(mu^i, mu^0) >= mu^i(B) - mu^0(B), mu^0 being the mixture of all
// agents with equal weights. B is where a ratio of Gaussians, matched to the moments of one half of
// the rows, is above 1; the other half says how many rows fall into it. So the estimate is in
// expectation below the truth, whatever the shape of the laws. It may come out below 0.
#pragma once

#include <cstddef>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/runtime/team.h"
#include "affpcl/table/frame.h"

namespace affpcl {

struct Environments {
  std::vector<Estimate> to_mixture;  // TV(mu^i, mu^0) by agent; NaN where it has one row
  // max_ij TV(mu^i, mu^j): n / (n - 1) times the largest to the mixture, whose agent is chosen on
  // the half that chose B. NaN with fewer than two agents of two rows.
  Estimate largest;
};

// rows[i]: rows of agent i, in random order. Intervals are 90 %, from the rows' scatter.
Environments environments(const Frame& frame, const std::vector<std::vector<std::size_t>>& rows,
                          Team& team);

}  // namespace affpcl
