// Who has which agents where several processes share a fit: agents come in leaves of 8, a process
// owns a contiguous run of them, and sums over agents have the same bits for any team. Sites that are
// apart own the agents whose rows they have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

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
  if (team.processes().apart()) return team.agents();
  return agents_in(team.own(agent_leaves(agents)), agents);
}

// A sum over all agents, `width` numbers each: add(agent, numbers) or add(agent, worker, numbers)
// for each of this process's.
class AgentSum {
 public:
  // `purpose` is what the sum is for, in words: a site keeps account of what it sends.
  AgentSum(std::string_view purpose, std::size_t width, std::size_t agents, Team& team);
  // Valid until the next call.
  template <class Add>
  const double* operator()(Add add) {
    const auto agent = [&](std::int64_t i, int worker, double* numbers) {
      if constexpr (std::is_invocable_v<Add, std::size_t, int, double*>) {
        add(static_cast<std::size_t>(i), worker, numbers);
      } else {
        add(static_cast<std::size_t>(i), numbers);
      }
    };
    if (team_.sums() == Sums::kFixed) return exact(agent);
    return sum_(team_, agent_leaves(agents_), [&](std::int64_t leaf, int worker, double* numbers) {
      const Leaves run = agents_in({leaf, leaf + 1}, agents_);
      for (std::int64_t i = run.first; i < run.last; ++i) agent(i, worker, numbers);
    });
  }

 private:
  // Every agent's numbers are brought to fixed point before they are added.
  const double* exact(FunctionRef<void(std::int64_t, int, double*)> agent);

  Team& team_;
  std::string_view purpose_;
  std::size_t width_, agents_;
  TeamSum sum_;
  std::vector<double> total_;
  struct Worker {
    std::vector<double> numbers;
    std::vector<Fixed> sum;
  };
  std::vector<Worker> workers_;
};

}  // namespace affpcl
