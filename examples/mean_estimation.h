// A problem of one's own, to copy: each agent wants the mean of its own normal distribution. As a
// system (eq:sys): A(s) = I, b^i(s) = s, mu^i = N(m_i, I).
//
// Say what a sample holds (declare) and how it is drawn (draw), what A(s) x and b^i(s) are, and, if
// you know them, the means: then solve() finds the truth and errors can be told. Add your kind() to
// affpcl/problem/catalogue.cc (or call add_problem_kind).
#pragma once

#include <cstdint>

#include "affpcl/problem/catalogue.h"
#include "affpcl/problem/problem.h"

namespace affpcl::examples {

class MeanEstimation final : public Problem {
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
  void apply(Lanes lanes, In s, In x, Out Ax) const override;
  void objective(Lanes lanes, In s, Out b) const override;

  bool has_means() const override { return true; }
  void mean_apply(Lanes lanes, In x, Out Ax) const override;
  void mean_objective(Lanes lanes, Out b) const override;

 private:
  Config config_;
  Store mean_;  // m_i
};

}  // namespace affpcl::examples
