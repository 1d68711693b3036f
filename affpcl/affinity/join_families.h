// join_pilot.h for families other than gaussian: from all rows of each agent, the posterior of what its
// model from the centre gains over one of its rows alone.
#pragma once

#include "affpcl/affinity/join_pilot.h"

namespace affpcl {

PilotResult join_families(const Frame& frame, const PilotOptions& options, Team& team);

}  // namespace affpcl
