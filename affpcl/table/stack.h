// Stacking: every agent's model is a combination of its personalised, independent and pooled models
// with weights that suit its held-out rows. The weights lie on a fixed grid whose distribution over
// agents is learnt (empirical Bayes), so that an agent with few rows leans on what suits the others.
// docs/explain/fit.md, "Stacking".
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "affpcl/runtime/team.h"
#include "affpcl/table/model.h"

namespace affpcl {

inline constexpr std::size_t kStackGrid = 15;  // quarters that sum to 1
const std::array<ByKind<double>, kStackGrid>& stack_grid();

// Sums of one agent's losses at the points of the grid, and how many rows they are of.
struct StackLosses {
  std::array<double, kStackGrid> loss = {};
  double rows = 0;
  void add(const StackLosses& other, double times);
};

// The weights of the agents of this process, agent `first` at 0; `agents` are those of all. Losses are
// log losses, or squared errors and deviances, whose scale every agent has its own of.
std::vector<ByKind<double>> stack_weights(const std::vector<StackLosses>& losses,
                                          std::size_t agents, bool log_losses, Team& team);

}  // namespace affpcl
