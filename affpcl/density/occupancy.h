// Ratios of agents that act (on-policy control): each agent computes its own law q^i over finitely
// many cells, which moves with its iterate, and adds it to the round's sum; so
//
//     rho^i(cell) = q^i(cell) / mean_j q^j(cell)
//
// is current in every round. Exact: q^i is the law itself. Otherwise what the agent cannot compute
// is counted: the paper's choice for SARSA, state visits (this round's too) times the policy.
//
// Counted frequencies f^i are noisy: 6 % a state after 2,500 steps with 10 states. They are shrunk
// to their mean over the agents, f = mean_j f^j of the rounds before this one:
//
//     f + w^i (f^i - f),   w^i = max(0, 1 - (states - 3)(1 - 1/n) / X^2)
//
// with Pearson's X^2 = t sum_o (f^i - f)^2 / f, as the other learnt ratios (learnt.h). The paper
// does not shrink: w = 1.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class OccupancyRatio final : public Ratio {
 public:
  struct Config {
    bool shrink = true;
  };
  static const Params<Config>& params();
  // The exact law, or counted visits times the policy.
  OccupancyRatio() : exact_(true) {}
  explicit OccupancyRatio(const Config& config) : exact_(false), shrink_(config.shrink) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void end(const Block& block, In x, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  void own(const Block& block, In s, Out rho) const override;
  bool learns() const override { return true; }  // the mixture, at least
  std::vector<std::string_view> uncompressed() const override { return {"q", "hits", "visits"}; }

 private:
  const Occupancy* occupancy(const Problem& problem) const {
    const Facets facets = problem.facets();
    return exact_ ? facets.occupancy : facets.counted_occupancy;
  }

  void shrink(const Block& block, Out visits) const;

  bool exact_, shrink_ = false;
  double n_ = 1;
  Field f_;           // centre: mean_j of the visits so far, where they are shrunk to it
  Product sum_f_;     // sum: the same
  Field q_, visits_;  // agent: the law; how often each counted state was met
  Field mix_;         // centre: mean_j q^j
  Field met_;         // centre: how many cells this round's samples are in, and which
  Product sum_q_;     // sum
  Product M_, hits_;  // sum: one-hot(cell) g', and how many samples
};

}  // namespace affpcl
