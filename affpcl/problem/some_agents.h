// A problem of which this process has the data of some agents only: those of one site of a
// federation. It numbers the agents of all sites, and what it holds of the others is empty.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "affpcl/math/fixed.h"
#include "affpcl/math/lane_set.h"
#include "affpcl/math/sum_tree.h"

namespace affpcl {

class Problem;

class SomeAgents {
 public:
  virtual ~SomeAgents() = default;
  virtual Leaves own() const = 0;  // the numbers of these agents
  // Sums over all sites, number by number. Only while the problem and its run are made.
  virtual void sum_sites(std::span<Fixed> numbers) const = 0;
  void sum_sites(std::span<double> numbers) const;  // BadInput where one is too large
  bool has(std::int64_t agent) const { return own().first <= agent && agent < own().last; }
  LaneSet of(Lanes lanes) const;  // these agents of a block
};

// nullptr where the problem has the data of all its agents.
const SomeAgents* some_agents(const Problem& problem);
// BadInput where it is not all; `who` is such as "a relative schedule needs".
void need_all_agents(const Problem& problem, std::string_view who);

}  // namespace affpcl
