// Which agents take part in which round.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/random/choose.h"
#include "affpcl/runtime/run.h"

namespace affpcl {

std::int64_t Run::count_recorded(std::int64_t sample) const {
  return facets_.recorded != nullptr ? facets_.recorded->count_present(sample) : shape_.agents;
}

void Run::refuse_schedule() const {
  for (std::size_t r = 0; r < options_.schedule.size(); ++r) {
    const std::vector<std::int64_t>& agents = options_.schedule[r];
    if (agents.empty()) throw BadInput(fmt::format("the schedule has no agent in round {}", r + 1));
    for (const std::int64_t a : agents)
      if (a < 0 || a >= shape_.agents)
        throw BadInput(fmt::format("the schedule names agent {} in round {}, but there are {}", a,
                                   r + 1, shape_.agents));
  }
}

void Run::take_part(Present& present, std::int64_t round) const {
  if (options_.schedule.empty()) {
    const auto n = static_cast<double>(shape_.agents);
    present.count = std::max<std::int64_t>(1, std::llround(options_.participation * n));
    const Key key{options_.seed, options_.replicate, static_cast<std::uint32_t>(round)};
    return choose(key, Purpose::kPresence, shape_.agents, present.count, present.blocks);
  }
  const std::vector<std::int64_t>& agents =
      options_.schedule[static_cast<std::size_t>(round) % options_.schedule.size()];
  present.count = static_cast<std::int64_t>(agents.size());
  std::fill(present.blocks.begin(), present.blocks.end(), 0);
  for (const std::int64_t a : agents)
    present.blocks[static_cast<std::size_t>(a / kLanes)] |= LaneSet{1} << a % kLanes;
}

void Run::attend(Group& group, std::int64_t at, int steps) const {
  const std::int64_t round = at / group.period, sample = (at + steps) * group.batch - 1;
  Present& present = group.present[static_cast<std::size_t>(round % 2)];
  const std::int64_t recorded = count_recorded(sample);
  present.count = recorded;
  if (!partial() && recorded == shape_.agents) return;
  present.blocks.resize(static_cast<std::size_t>(blocks_of(shape_.agents)));
  present.begin();
  if (partial()) return take_part(present, round);
  const bool all = facets_.densities != nullptr;  // their mixture is of all who are present
  const std::int64_t end = all ? blocks_of(shape_.agents) : last_block_;
  for (std::int64_t b = all ? 0 : first_block_; b < end; ++b) {
    const Lanes lanes = lanes_of(b, shape_.agents);
    LaneSet& here = present.blocks[static_cast<std::size_t>(b)] = 0;
    for (int l = 0; l < lanes.count; ++l)
      if (facets_.recorded->present(lanes.first + l, sample)) here |= LaneSet{1} << l;
  }
}

double Run::share_present(int period) const {
  const auto n = static_cast<double>(shape_.agents);
  if (options_.schedule.empty())
    return partial() ? std::max(1.0, std::round(options_.participation * n)) / n : 1;
  const auto rounds = static_cast<std::size_t>((step_ + period - 1) / period),
             length = options_.schedule.size();
  double sum = 0, part = 0;  // of a whole schedule, and of its last piece
  for (std::size_t r = 0; r < length; ++r) {
    const double here = static_cast<double>(options_.schedule[r].size()) / n;
    sum += here;
    if (r < rounds % length) part += here;
  }
  return rounds == 0
             ? 1
             : (static_cast<double>(rounds / length) * sum + part) / static_cast<double>(rounds);
}

const Present* Run::present(const Group& group, std::int64_t at) const {
  const Present& present = group.present[static_cast<std::size_t>(at / group.period % 2)];
  return present.count < shape_.agents ? &present : nullptr;
}

LaneSet Run::present(const Group& group, std::int64_t at, std::int64_t block) const {
  const Lanes lanes = lanes_of(block, shape_.agents);
  const Present* of_round = present(group, at);
  return of_round != nullptr ? of_round->of(lanes) & own(lanes) : own(lanes);
}

}  // namespace affpcl
