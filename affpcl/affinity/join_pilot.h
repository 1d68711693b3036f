// Before training: what agents should gain from joining a centre, by simulation. Given a pilot share of
// its rows an agent has a posterior; draws from it make the rest of its rows, and the two models that
// those rows give are compared. docs/explain/join.md derives it.
#pragma once

#include <span>
#include <vector>

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

inline constexpr double kJoinPilot = 1;  // share of rows: none of them leave

// Of PilotResult only what belongs to single agents is filled in: excess, loss, gain, prospect.
PilotResult join_pilot(const Frame& frame, const PilotOptions& options, Team& team);

// Parts of it.

PilotResult begin_join(const Frame& frame,
                       const Model& centre);  // with agents, still without scores
void count_prospects(PilotResult& result);
// From draws of the expected loss beyond that of the truth, of both models, and of the truth's own.
void compare(std::span<const double> own, std::span<const double> alone,
             std::span<const double> noise, AgentPilot& agent);

}  // namespace affpcl
