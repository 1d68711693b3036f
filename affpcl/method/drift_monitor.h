// Watches the importance correction of every agent while it learns:
//
//   drift    h = rg^i - g^{c->i} has mean 0 where the ratio is right, whatever x^c and theta^c are.
//            Each round's h is projected on the direction of the mean of those before it; over the
//            second half of the run these numbers are a martingale under a right ratio and have a
//            positive mean under a wrong one. Their first three moments make a t statistic,
//            corrected for skewness (Hall 1992). Samples of one trajectory depend on each other;
//            there the numbers are means over 32 steps. An h of the size of the rounding of its
//            two parts is no evidence. From 100 numbers on there is a test.
//   weights  rho^i at the agent's own sample, in a few rounds of the run. For E_mu0[rho^2] =
//            E_mu^i[rho], one over their mean is the effective share of all agents' samples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "affpcl/density/ratio.h"
#include "affpcl/method/method.h"

namespace affpcl {

class DriftMonitor {
 public:
  void declare(const Setup& setup, Layout& agent);
  // In a few rounds of the run: looks at the weights rho^i of the agents' own samples.
  void weigh(const Block& block, const Ratio& ratio) const;
  // Writes h = rg - gc of one local step, and takes it into account.
  void follow(const Block& block, In rg, In gc, Out h) const;

  static std::vector<Tally> tallies();
  void report(Agents agents, Out rows) const { copy(agents[tally_], rows); }
  static std::vector<std::string> columns();
  static void conclude(std::span<const double> tallies, std::span<double> columns);

 private:
  enum Row { kWeights, kWeightSum, kOutside, kLargest, kCount, kS1, kS2, kS3, kSize, kRows };
  bool looks(const Block& block) const {  // one of a few rounds of the run
    return (block.round.first / period_ + 1) % every_ == 0;
  }

  double n_ = 1;
  std::int64_t steps_ = 0, every_ = 1;
  int period_ = 1;
  Field tally_;   // agent: the numbers above
  Field h_;       // agent: summed h
  int span_ = 1;  // steps that make one number
  Field part_;    // agent: the sum of the number that is not complete, and how many it has
};

}  // namespace affpcl
