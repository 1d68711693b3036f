// No importance correction: rho = 1, p = 1. Right when all environments are the same, biased when
// they are not.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class NoRatio final : public Ratio {
 public:
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  void own(const Block& block, In s, Out rho) const override;

 private:
  Field mean_;
};

}  // namespace affpcl
