// One replicate of a setting: its problem, and the run of all its methods. Studies, the Python
// package and tests make it here, so that a spec is the same run everywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/problem/problem.h"
#include "affpcl/runtime/run.h"
#include "affpcl/study/spec.h"

namespace affpcl {

struct Replica {
  std::unique_ptr<Problem> problem;
  std::unique_ptr<Run> run;  // on the problem
};

// `number` is what results call the replicate; a study counts from Spec::first. BadInput where the
// problem, the methods and the run do not fit together, or not into memory.
Replica make_replica(const Spec& spec, std::uint32_t number, Team& team);
// The same on a problem that is there already.
Replica make_replica(const Spec& spec, std::uint32_t number, Team& team,
                     std::unique_ptr<Problem> problem);

// What all replicates of a setting have in common: the shape of their results, and the names in it.
struct SettingShape {
  std::int64_t agents = 0;
  int d = 0;
  bool truth = false, centre = false;  // whether the solutions of agents and centre are known
  std::vector<std::int64_t> curve_agents;
  std::vector<std::string> errors, agent_names, unknown_names;
};
SettingShape shape_of(const Spec& spec, const Problem& problem);

// The problem of a replicate, or this process's share of it.
std::unique_ptr<Problem> make_problem(const Spec& spec, std::uint32_t number,
                                      const AgentShare& share = all_agents());

// The agents whose own curves are kept, in order, each once; -1 is the last of `agents`.
std::vector<std::int64_t> curve_agents(const Spec& spec, std::int64_t agents);

}  // namespace affpcl
