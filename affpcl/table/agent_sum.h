// Who has which agents where several processes share a fit: agents come in leaves of 8, a process
// owns a contiguous run of them, and sums over agents have the same bits for any team.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "affpcl/runtime/team.h"

namespace affpcl {

inline constexpr std::int64_t kAgentsALeaf = 8;

inline std::int64_t agent_leaves(std::size_t agents) {
  return (static_cast<std::int64_t>(agents) + kAgentsALeaf - 1) / kAgentsALeaf;
}
// The agents of a run of leaves.
inline Leaves agents_in(Leaves leaves, std::size_t agents) {
  const auto n = static_cast<std::int64_t>(agents);
  return {std::min(n, leaves.first * kAgentsALeaf), std::min(n, leaves.last * kAgentsALeaf)};
}
inline Leaves own_agents(std::size_t agents, const Team& team) {
  return agents_in(team.own(agent_leaves(agents)), agents);
}

// A sum over all agents, `width` numbers each: add(agent, numbers) for each of this process's.
class AgentSum {
 public:
  AgentSum(std::size_t width, std::size_t agents, Team& team)
      : team_(team), agents_(agents), sum_(width, team.workers()) {}
  // Valid until the next call.
  template <class Add>
  const double* operator()(Add add) {
    return sum_(team_, agent_leaves(agents_), [&](std::int64_t leaf, int, double* numbers) {
      const Leaves run = agents_in({leaf, leaf + 1}, agents_);
      for (std::int64_t i = run.first; i < run.last; ++i) add(static_cast<std::size_t>(i), numbers);
    });
  }

 private:
  Team& team_;
  std::size_t agents_;
  TeamSum sum_;
};

}  // namespace affpcl
