// Ratios by counting (apx:dre with psi = one-hot): rho^i(s) = count^i(s) / mean_j count^j(s) on a
// problem with finitely many states; 1 at a state that no agent has seen.
#pragma once

#include "affpcl/density/learnt.h"

namespace affpcl {

class CountRatio final : public LearntRatio {
 public:
  using LearntRatio::LearntRatio;
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  std::vector<std::string_view> uncompressed() const override { return {"counts"}; }
  void own(const Block& block, In s, Out rho) const override;

 private:
  void solve(Centre centre, In V, Out eta) const override;

  Product M_;       // sum: one-hot(cell) g'
  Product counts_;  // sum: one-hot(cell)
  Field met_;       // centre: how many cells this round's samples are in, and which
};

}  // namespace affpcl
