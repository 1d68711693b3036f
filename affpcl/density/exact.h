// Exact known densities (sec:k-het-pcl): psi and eta come from the problem, which fuses the sum.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class ExactRatio final : public Ratio {
 public:
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Round& round, In s, In g, Agents agents, Centre centre,
                  Message message) const override;
  void correct(const Round& round, Agents agents, Centre centre, Mean mean, Out rg) const override;
  void own(const Round& round, In s, Agents agents, Centre centre, Out rho) const override;

 private:
  Product M_;
};

}  // namespace affpcl
