#include "affpcl/problem/made_store.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "affpcl/problem/agent_share.h"

namespace affpcl {

MadeStore::MadeStore(int rows, std::int64_t agents) : MadeStore(rows, agents, all_agents(), {}) {}

MadeStore::MadeStore(int rows, std::int64_t agents, const AgentShare& share, Make make)
    : rows_(rows), agents_(agents), make_(std::move(make)) {
  const Leaves own = share.own(leaves_of(agents));
  first_ = std::min(own.first * (kLeaf / kLanes), blocks_of(agents));
  last_ = std::min(own.last * (kLeaf / kLanes), blocks_of(agents));
  own_ = Store(rows, agents, first_, last_);
}

void MadeStore::make_own(const AgentShare& share) {
  share.sum(agents_, 0, [&](std::int64_t b, double*) { make_(b, own_.block(b)[Field{0, rows_}]); });
}

Agents MadeStore::made(std::int64_t b) const {
  if (!make_) throw std::logic_error("rows of agents that this process does not hold");
  const std::lock_guard lock(others_->mutex);
  const auto [block, is_new] = others_->blocks.try_emplace(b);
  const Lanes lanes = lanes_of(b, agents_);
  if (is_new) {
    block->second = Buffer(static_cast<std::size_t>(rows_) * kLanes);
    make_(b, Out{block->second.data(), rows_, lanes_to_write(lanes.count)});
  }
  return {lanes, block->second.data()};
}

void MadeStore::keep(std::int64_t first_block, std::int64_t last_block) {
  others_->blocks.clear();
  if (first_block == first_ && last_block == last_) return;
  own_.keep(first_block, last_block);
  first_ = first_block, last_ = last_block;
}

}  // namespace affpcl
