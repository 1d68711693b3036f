// Densities of environments mu^e = N(m_e, I), dealt out to the agents in turn: psi holds one ratio
// rho^e for every environment, and eta^i picks the agent's own. psi is never stored. M is kept as d
// x p: an agent's column.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "affpcl/math/mixture.h"
#include "affpcl/problem/made_store.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

// length * (random unit vector)
std::vector<double> random_direction(const Key& key, std::int64_t agent, Purpose purpose, int dim,
                                     double length);

// An agent's own weights: `base` plus `distance` times a random unit vector that does not depend on
// it, so that settings of a sweep differ by the knob alone.
std::vector<double> weights_near(const Key& key, std::vector<double> base, std::int64_t agent,
                                 double distance);

// Environments at a distance from a common centre, the origin.
struct NormalEnvironments {
  std::int64_t agents = 0;
  std::int64_t distinct = 0;  // 0: one per agent; at radius 0 there is one for all
  int dim = 0;
  double radius = 0;          // |m_e|
  bool first_central = true;  // m_0 = 0
};

class NormalDensities final : public Densities {
 public:
  NormalDensities() = default;
  // `means` is [environments][dim]; agent i has environment i mod environments, and the rows
  // `observed` of its sample are what is drawn from it.
  NormalDensities(std::int64_t agents, int dim, std::vector<double> means, Field observed);
  NormalDensities(const Key& key, const NormalEnvironments& environments, Field observed,
                  const AgentShare& share = all_agents());

  std::int64_t environments() const { return count_; }
  // Where there is one environment per agent, these are drawn when they are first asked for: exact
  // ratios need those of all agents, and nothing else does.
  const double* mean(std::int64_t environment) const;
  In mean(Lanes lanes) const { return mean_.block(lanes.first / kLanes)[Field{0, dim_}]; }
  double farthest() const { return farthest_; }  // the largest |m_e|^2
  void keep(std::int64_t first_block, std::int64_t last_block) {
    mean_.keep(first_block, last_block);
  }

  int p() const override { return static_cast<int>(count_); }
  bool has_single() const override { return true; }
  void accumulate_single(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override;
  void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override;
  void correct(Lanes lanes, const double* M, Out rg) const override;
  double tv(std::int64_t i, std::int64_t j) const override;
  void own(Lanes lanes, In s, Scratch& scratch, Out rho) const override;
  void accumulate_some(LaneSet which, Lanes lanes, In s, In g, bool single, Scratch& scratch,
                       double* M) const override;
  bool has_parts() const override { return true; }
  std::unique_ptr<Densities> among(const Present& present) const override;

 private:
  class Among;
  class Environments;
  NormalDensities(std::shared_ptr<Environments> drawn, std::int64_t agents, int dim, Field observed,
                  const AgentShare& share);
  std::int64_t environment(std::int64_t agent) const { return agent % environments(); }
  void accumulate(Lanes lanes, In s, In g, Precision precision, Scratch& scratch, double* M) const;
  const Mixture& mixture() const;
  In observed(In s) const { return {s.row(observed_.at), observed_.rows, s.width}; }

  int dim_ = 0;
  Field observed_;
  std::int64_t count_ = 0;  // of environments
  double farthest_ = 0;
  std::shared_ptr<Environments> drawn_;
  MadeStore mean_;  // m_i, per agent
};

}  // namespace affpcl
