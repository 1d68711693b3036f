// A problem to copy: each agent looks for the mean of its own normal distribution. As a system
// (eq:sys): A(s) = I, b^i(s) = s, mu^i = N(m_i, I).
//
// Write what a sample holds (declare), how it is drawn (draw), b^i(s) (objective) and
// g = A(s) x - b (direction), which need not be linear in x. Exact means are a facet
// (affpcl/problem/facets.h lists all): with them solve() finds the truth, and runs report errors.
// Add kind() to affpcl/problem/catalogue.cc, or call register_problem from a program of your own
// (own_method.cc, which says how to compile it).
#pragma once

#include <cstdint>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/problem.h"

namespace affpcl::examples {

class MeanEstimation final : public Problem, public Means {
 public:
  struct Config {
    std::int64_t agents = 10;
    int dim = 3;
    double spread = 1.0;  // m_i ~ spread N(0, I)
  };
  MeanEstimation(const Config& config, std::uint64_t seed, std::uint32_t replicate);
  static const Params<Config>& params();
  static ProblemKind kind();

  Shape shape() const override { return {.agents = config_.agents, .d = config_.dim}; }
  void declare(Layout& world, Layout& sample) const override;
  void draw(const Draw& draw, Agents world, Out s) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;

  Facets facets() const override { return {.means = this}; }
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;

 private:
  Config config_;
  Store mean_;  // m_i
};

}  // namespace affpcl::examples
