// Who makes which agents of a problem, where several processes share them, and sums over the agents
// of all. What concerns an agent alone is made from its number; what concerns all is such a sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/math/blocks.h"
#include "affpcl/math/sum_tree.h"
#include "affpcl/problem/made_store.h"

namespace affpcl {

// Here: one process that makes all of them. runtime/team_share.h divides them among ranks and
// threads.
class AgentShare {
 public:
  virtual ~AgentShare() = default;
  // The leaves of 256 agents that this process makes, of so many.
  virtual Leaves own(std::int64_t leaves) const { return {0, leaves}; }
  // The sums over all agents, in the order of the sum tree: add(block, numbers) adds those of one
  // block to `width` numbers. It is called for the blocks that this process makes, from any thread.
  // Where it throws BadInput on any process, all of them do.
  using Add = FunctionRef<void(std::int64_t block, double* numbers)>;
  virtual std::vector<double> sum(std::int64_t agents, std::size_t width, Add add) const;
  virtual double largest(double mine) const { return mine; }  // of all processes
};

// add(block, numbers) for the blocks of a leaf.
void add_leaf(std::int64_t leaf, std::int64_t agents, AgentShare::Add add, double* numbers);

}  // namespace affpcl
