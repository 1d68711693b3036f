// The coefficients of an agent without rows: the centre's, the pooled model's or a mean of the two,
// whichever predicts agents best that were held out.
#pragma once

#include <vector>

#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/ridge.h"

namespace affpcl {

inline constexpr std::size_t kUnseenGroups = 10;  // of agents, held out in turn

// The weight of the pooled model, from 0 to 1; `group` has that of each of this process's agents.
// D, s^2 and the ridge's strength stay as they are.
double pooled_weight(const std::vector<std::size_t>& group, const Moments& moments,
                     const Learnt& learnt, const Ridge& pooled, double centre_precision,
                     Team& team);

}  // namespace affpcl
