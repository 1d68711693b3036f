// A problem to copy: each agent looks for the mean of its own responses. It measures s ~ N(m_i, I)
// and observes y = s weighed entry by entry with its own theta^i. As a system (eq:sys):
//
//   A(s) = I,    b^i(s) = Phi(s) theta^i,    Phi(s) = diag(s),    mu^i = N(m_i, I)
//
// Write what a sample holds (declare), how it is drawn (draw), b^i(s) (objective) and
// g = A(s) x - b (direction), which need not be linear in x. All else is a facet
// (affpcl/problem/facets.h lists them), and a problem has those it names in facets():
//   means      exact means: with them solve() finds the truth, and runs report errors
//   linear     b^i = Phi theta^i: AffPCL learns the central objective (objective = "learnt")
//   densities  mu^i can be evaluated: the importance correction is exact (ratio = "exact")
// Add kind() to affpcl/problem/catalogue.cc, or call register_problem from a program of your own
// (own_method.cc, which says how to compile it).
#pragma once

#include <cstdint>
#include <vector>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/problem.h"

namespace affpcl::examples {

class MeanEstimation final : public Problem,
                             public Means,
                             public LinearObjective,
                             public Densities {
 public:
  struct Config {
    std::int64_t agents = 10;
    int dim = 3;
    double spread = 1.0;  // m_i ~ spread N(0, I)
    double tilt = 0.0;    // theta^i ~ 1 + tilt N(0, I)
  };
  MeanEstimation(const Config& config, std::uint64_t seed, std::uint32_t replicate);
  static const Params<Config>& params();
  static ProblemKind kind();

  Shape shape() const override {
    return {.agents = config_.agents, .d = config_.dim, .k = config_.dim};
  }
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;

  Facets facets() const override { return {.linear = this, .means = this, .densities = this}; }
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;
  void mean_Phi(Lanes lanes, In theta, Out bhat) const override;
  void mean_coe(Lanes lanes, In theta, Out g) const override;

  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;

  int p() const override { return static_cast<int>(config_.agents); }  // one ratio an agent
  void accumulate(Lanes lanes, In s, In g, Scratch& scratch, double* M) const override;
  void correct(Lanes lanes, const double* M, Out rg) const override;
  void own(Lanes lanes, In s, Scratch& scratch, Out rho) const override;

 private:
  In mean(Lanes lanes) const { return mean_.block(lanes.first / kLanes)[{0, config_.dim}]; }
  In theta(Lanes lanes) const { return theta_.block(lanes.first / kLanes)[{0, config_.dim}]; }
  // mu^e(s) / mu^0(s) of every agent e at one lane's sample.
  void ratios(In s, int lane, double* rho) const;

  Config config_;
  Store mean_, theta_;       // m_i and theta^i, a column per agent
  std::vector<double> all_;  // m_e once more, [agents][dim]
};

}  // namespace affpcl::examples
