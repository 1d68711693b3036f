// Rows of every agent that can be made from its number, of which a process holds its own agents'.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "affpcl/math/blocks.h"

namespace affpcl {

class AgentShare;                // who makes which agents (agent_share.h)
const AgentShare& all_agents();  // all of them by this process

// A block of other agents is made when it is asked for, and held until keep().
class MadeStore {
 public:
  using Make = std::function<void(std::int64_t block, Out rows)>;

  MadeStore() = default;
  MadeStore(int rows, std::int64_t agents);  // all of them, which are written
  // The own blocks are zero until they are written, or make_own() makes them.
  MadeStore(int rows, std::int64_t agents, const AgentShare& share, Make make);
  void make_own(const AgentShare& share);

  Agents block(std::int64_t b) const { return b >= first_ && b < last_ ? own_.block(b) : made(b); }
  // From now on these are the own blocks; they must be among those there are.
  void keep(std::int64_t first_block, std::int64_t last_block);

 private:
  struct Others {
    std::mutex mutex;
    std::map<std::int64_t, Buffer> blocks;
  };
  Agents made(std::int64_t b) const;

  int rows_ = 0;
  std::int64_t agents_ = 0, first_ = 0, last_ = 0;
  Store own_;
  Make make_;
  std::unique_ptr<Others> others_ = std::make_unique<Others>();
};

}  // namespace affpcl
