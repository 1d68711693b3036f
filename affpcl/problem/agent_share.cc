#include "affpcl/problem/agent_share.h"

#include <algorithm>

namespace affpcl {

const AgentShare& all_agents() {
  static const AgentShare kAll;
  return kAll;
}

void add_leaf(std::int64_t leaf, std::int64_t agents, AgentShare::Add add, double* numbers) {
  const std::int64_t first = leaf * (kLeaf / kLanes),
                     last = std::min(first + kLeaf / kLanes, blocks_of(agents));
  for (std::int64_t b = first; b < last; ++b) add(b, numbers);
}

std::vector<double> AgentShare::sum(std::int64_t agents, std::size_t width, Add add) const {
  SumTree tree(width);
  for (std::int64_t leaf = 0; leaf < leaves_of(agents); ++leaf) {
    add_leaf(leaf, agents, add, tree.open());
    tree.push(leaf);
  }
  const double* total = tree.finish(leaves_of(agents));
  return {total, total + width};
}

}  // namespace affpcl
