// What `fit` prints.
#pragma once

#include <array>
#include <string_view>

#include "affpcl/base/params.h"
#include "affpcl/fit/fit.h"
#include "cli/terminal.h"

namespace affpcl::cli {

enum class AgentOrder { kGain, kLeastGain, kLoss, kRows, kName };

// Which agents are shown, in which order.
struct AgentsShown {
  AgentOrder sort = AgentOrder::kGain;
  std::size_t top = 0;  // the first ones; 0: some from each end
  bool all = false;
};

void print_fit(const FitResult& result, const AgentsShown& agents, const Style& style);

}  // namespace affpcl::cli

namespace affpcl {
template <>
struct EnumNames<cli::AgentOrder> {
  static constexpr std::array<std::string_view, 5> all = {"gain", "least-gain", "loss", "rows",
                                                          "name"};
};
}  // namespace affpcl
