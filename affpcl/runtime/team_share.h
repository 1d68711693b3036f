// Divides the agents of a problem among the ranks and threads of a team, as a run on it does.
#pragma once

#include "affpcl/problem/agent_share.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

class TeamShare final : public AgentShare {
 public:
  explicit TeamShare(Team& team) : team_(team) {}
  Leaves own(std::int64_t leaves) const override { return team_.own(leaves); }
  std::vector<double> sum(std::int64_t agents, std::size_t width, Add add) const override;
  double largest(double mine) const override;

 private:
  Team& team_;
};

}  // namespace affpcl
