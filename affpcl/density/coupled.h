// Ratios from coupled pairs (ex:couple): besides its sample every agent draws a pair (s^i, s^0)
// with s^i ~ mu^i, s^0 ~ mu^0 that agree as often as can be, so V^i = sum psi(s^i) - psi(s^0) has a
// variance of the order of TV(mu^i, mu^0). The pairs come from an oracle that only a finite problem
// has; everything else is as in the linear ratio.
#pragma once

#include "affpcl/density/linear.h"

namespace affpcl {

class CoupledRatio final : public LinearRatio {
 public:
  struct Config {
    LinearRatio::Config linear = {.learnt = {.shrink = false}};  // it assumes own samples' noise
  };
  static const Params<Config>& params();
  explicit CoupledRatio(const Config& config) : LinearRatio(config.linear) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;

 private:
  int rows_ = 0;  // of a sample
  Field drawn_;   // agent: pairs so far
};

}  // namespace affpcl
