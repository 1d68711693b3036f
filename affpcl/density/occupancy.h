// Ratios of agents that act (on-policy control): each agent computes its own law q^i over finitely
// many cells, which moves with its iterate, and adds it to the round's sum; so
//
//     rho^i(cell) = q^i(cell) / mean_j q^j(cell)
//
// is current in every round. Exact: q^i is the law itself. Otherwise what the agent cannot compute
// is counted: the paper's choice for SARSA, state visits (this round's too) times the policy.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class OccupancyRatio final : public Ratio {
 public:
  explicit OccupancyRatio(bool exact) : exact_(exact) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void end(const Block& block, In x, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  void own(const Block& block, In s, Out rho) const override;
  bool learns() const override { return true; }  // the mixture, at least
  std::vector<std::string_view> uncompressed() const override { return {"q", "hits"}; }

 private:
  const Occupancy* occupancy(const Problem& problem) const {
    const Facets facets = problem.facets();
    return exact_ ? facets.occupancy : facets.counted_occupancy;
  }

  bool exact_;
  Field q_, visits_;  // agent: the law; how often each counted state was met
  Field mix_;         // centre: mean_j q^j
  Field met_;         // centre: how many cells this round's samples are in, and which
  Product sum_q_;     // sum
  Product M_, hits_;  // sum: one-hot(cell) g', and how many samples
};

}  // namespace affpcl
