// Linear ratios by least squares from sums (apx:dre in the minus-one form): no step size, p numbers
// per agent, one p x p inverse at the centre, made anew when the samples have grown by 2 %. With
// one-hot features these are the counts, up to that delay.
#pragma once

#include <memory>

#include "affpcl/density/features.h"
#include "affpcl/density/learnt.h"

namespace affpcl {

class LinearRatio : public LearntRatio {
 public:
  struct Config {
    LearntRatio::Config learnt = {};
    FeatureConfig features = {};
    double ridge = 0;  // relative: this share of the Gram matrix' diagonal is added to it
  };
  static const Params<Config>& params();

  explicit LinearRatio(const Config& config)
      : LearntRatio(config.learnt), features_config_(config.features), ridge_(config.ridge) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void own(const Block& block, In s, Out rho) const override;
  std::vector<std::string_view> uncompressed() const override { return {"psi", "G"}; }

 protected:
  // psi of a block, and this round's sums.
  Out features(const Block& block, In s) const;
  void add(Message message, In psi, In g) const;
  // rg = gbar + M' eta for ratios that keep eta per agent.
  void apply_eta(Mean mean, In eta, double constant, Out rg) const;

  // tr G; throws BadInput if a feature was not finite.
  double trace(const double* G) const;

  Field G_;                   // centre: summed mean psi psi'
  Field sum_psi_, sum_gbar_;  // sum
  Product sum_M_, sum_G_;

 private:
  void solve(Centre centre, In V, Out eta) const override;
  void square(Centre centre, In V, Scratch& scratch, Out X2) const override;

  FeatureConfig features_config_;
  double ridge_;
  std::unique_ptr<Features> psi_;
  Field W_;      // centre: the generalised inverse of G
  Field trace_;  // centre: tr G when W was made, and now
};

}  // namespace affpcl
