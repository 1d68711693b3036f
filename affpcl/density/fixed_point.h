// The stochastic fixed-point iterations of apx:dre, one step a round with step_size_ratio:
//
//   eta^i -= alpha (mean_j psi psi'(s^j) eta^i - psi(s^i))                       rho = psi' eta
//   eta^i -= alpha (mean_j psi psi'(s^j) eta^i - psi(s^i) + mean_j psi(s^j))     rho = 1 + psi' eta
//
// As the paper has them, for comparison: least squares needs no step size and is as fast as can be.
// They start at eta = 0: in the first form that is rho = 0.
//
// An agent steps in the rounds that it takes part in, so where agents are absent eta^i becomes the
// ratio to the mixture that agent i meets: itself with share 1/m, the others with the rest.
#pragma once

#include "affpcl/density/linear.h"

namespace affpcl {

class FixedPointRatio final : public LinearRatio {
 public:
  enum class Form { kRatio, kMinusOne };
  struct Config {
    LinearRatio::Config linear;
    Form form = Form::kMinusOne;
  };
  static const Params<Config>& params();

  explicit FixedPointRatio(const Config& config);
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  bool against_all() const override { return false; }
  std::vector<std::string_view> uncompressed() const override { return {"samples", "psi", "G"}; }
  void centre(const Round&, Mean mean, Centre) const override { trace(mean[sum_G_]); }
  void correct(const Block& block, Mean mean, Out rg) const override;
  void own(const Block& block, In s, Out rho) const override;
  void eta(Agents agents, Centre centre, Scratch& scratch, Out eta) const override;

 private:
  double constant() const { return form_ == Form::kMinusOne ? 1 : 0; }
  void step(const Block& block, Mean mean) const;

  Form form_;
  bool current_;
  Field eta_;    // agent
  Field count_;  // sum: samples
};

template <>
struct EnumNames<FixedPointRatio::Form> {
  static constexpr std::string_view all[] = {"ratio", "minus-one"};
};

}  // namespace affpcl
