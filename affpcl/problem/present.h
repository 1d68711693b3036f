// The agents that take part in a round, where these are not all.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "affpcl/math/lane_set.h"

namespace affpcl {

class Densities;
class Problem;

struct Present {
  std::int64_t count = 0;
  std::vector<LaneSet> blocks;  // of all agents, block by block
  LaneSet of(Lanes lanes) const { return blocks[static_cast<std::size_t>(lanes.first / kLanes)]; }
  bool has(std::int64_t agent) const {
    return has_lane(blocks[static_cast<std::size_t>(agent / kLanes)],
                    static_cast<int>(agent % kLanes));
  }

  // The problem's densities against the mixture of these agents alone, made when they are first
  // asked for; nullptr where the problem has none.
  const Densities* densities(const Problem& problem) const;
  void begin();  // of another round: what was made for the last one goes

 private:
  struct Made {
    std::once_flag once;
    std::unique_ptr<Densities> densities;
  };
  std::shared_ptr<Made> made_ = std::make_shared<Made>();
};

}  // namespace affpcl
