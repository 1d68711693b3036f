#include "affpcl/mixed/options.h"

namespace affpcl {

const Params<MixedOptions>& MixedOptions::params() {
  static const Params<MixedOptions> kParams = {
      {"covariance", &MixedOptions::covariance,
       "form of the random-effects covariance; average: all three, weighted by their evidence"},
      {"estimate", &MixedOptions::estimate,
       "the variances maximise the likelihood (ml) or the restricted likelihood (reml); auto: reml "
       "for "
       "the gaussian family without common columns, else ml"},
      {"plain", &MixedOptions::plain,
       "the same noise variance for all agents and none outlying, instead of an average over both"},
      {"approximation", &MixedOptions::approximation,
       "binomial and multinomial: laplace, as lme4 and GPBoost have it; variational: a lower bound "
       "of "
       "the likelihood; auto: laplace for two classes unless the bound shows it to be far off"},
  };
  return kParams;
}

}  // namespace affpcl
