// Sparse ratios (apx:dre, first example): environments that differ in a few features only. eta^i of
// the minus-one form by l1-regularised least squares, or with a hard threshold (l0), one proximal
// step a round from where the last round ended; with one-hot features that one step is exact. The
// threshold of feature k is `threshold` sqrt(2 ln p) standard deviations of V_k, about sqrt(G_kk).
#pragma once

#include "affpcl/density/linear.h"

namespace affpcl {

class SparseRatio final : public LinearRatio {
 public:
  enum class Penalty { kL0, kL1 };
  struct Config {
    LinearRatio::Config linear = {.learnt = {.shrink = false}};
    Penalty penalty = Penalty::kL0;
    double threshold = 1;
  };
  static const Params<Config>& params();

  explicit SparseRatio(const Config& config)
      : LinearRatio(config.linear), penalty_(config.penalty), threshold_(config.threshold) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  void eta(Agents agents, Centre centre, Scratch& scratch, Out eta) const override;

 private:
  Penalty penalty_;
  double threshold_;
  Field eta_;   // agent
  Field norm_;  // centre: a bound of the largest eigenvalue of G scaled to a unit diagonal
};

template <>
struct EnumNames<SparseRatio::Penalty> {
  static constexpr std::string_view all[] = {"l0", "l1"};
};

}  // namespace affpcl
