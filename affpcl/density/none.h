// No importance correction: rho = 1, p = 1. Right when all environments are the same, biased when
// they are not.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class NoRatio final : public Ratio {
 public:
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Round& round, In s, In g, bool first, Agents agents, Centre centre,
                  Message message) const override;
  void correct(const Round& round, Agents agents, Centre centre, Mean mean, Out rg) const override;
  void own(const Round& round, In s, Agents agents, Centre centre, Out rho) const override;

 private:
  Field mean_;
};

}  // namespace affpcl
