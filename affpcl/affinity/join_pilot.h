// Before training: what agents should gain from joining a centre, by simulation. Given a pilot share of
// its rows an agent has a posterior; draws from it make the rest of its rows, and the two models that
// those rows give are compared. docs/explain/join.md derives it.
#pragma once

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

inline constexpr double kJoinPilot = 1;  // share of rows: none of them leave

// The options of a table whose agents might join this centre. BadInput where it is of no linear model.
FrameOptions pilot_options(const FrameOptions& options, const Model& centre);

// Of PilotResult only what belongs to single agents is filled in: excess, loss, gain, prospect.
PilotResult join_pilot(const Frame& frame, const PilotOptions& options, Team& team);

}  // namespace affpcl
