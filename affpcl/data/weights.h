// Each agent's weights of outcome channels: a CSV file with a column that names the agent and one
// per channel.
#pragma once

#include <string>
#include <vector>

namespace affpcl {

// [agents][channels]. Every agent must have its row; BadInput otherwise, which names `data`, the
// file the agents are from. Rows of others are ignored.
std::vector<double> read_weights(const std::string& path, const std::string& agent_column,
                                 const std::vector<std::string>& channels,
                                 const std::vector<std::string>& agents, const std::string& data);

}  // namespace affpcl
