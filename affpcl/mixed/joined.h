// Agents that took no part in a fit: their posterior from its centre, D and noise, and their own rows.
// x_i has the prior N(x_c, D + H), H the covariance of x_c, so the result is what a fit of all agents
// with the same variances would give them. docs/explain/join.md derives it.
#pragma once

#include <span>

#include "affpcl/mixed/glmm.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/table/model.h"

namespace affpcl {

// What a centre says of one channel, for targets shifted by `mean` and divided by `sd`. `moments` are
// of the joining agents' rows.
Learnt joined_learnt(const ChannelModel& centre, double mean, double sd, const Moments& moments);
// The same with Learnt::noise and the moments' `wide` as these rows have them under the centre's law.
Learnt joined_agents(const ChannelModel& centre, double mean, double sd, const Moments& moments,
                     Team& team);
// Coefficients of an agent without rows, for such targets.
std::vector<double> joined_unseen(const ChannelModel& centre, double mean, double sd);

// The same of a generalised model: modes and curvatures of the agents that `rows` has.
GlmmLearnt joined_glmm(const Model& centre, double mean, double sd, const GlmmRows& rows,
                       const Likelihood& likelihood, Team& team);

// The model of joined agents has what the centre has in common.
void take_centre(const Model& centre, Model& model);

}  // namespace affpcl
