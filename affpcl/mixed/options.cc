#include "affpcl/mixed/options.h"

namespace affpcl {

const Params<MixedOptions>& MixedOptions::params() {
  static const Params<MixedOptions> kParams = {
      {"covariance", &MixedOptions::covariance,
       "form of the random-effects covariance; average: all three, weighted by their evidence"},
      {"estimate", &MixedOptions::estimate,
       "the variances maximise the likelihood (ml) or the restricted likelihood (reml); auto: reml for "
       "the gaussian family without common columns, else ml"},
      {"plain", &MixedOptions::plain,
       "the same noise variance for all agents and none outlying, instead of an average over both"},
  };
  return kParams;
}

}  // namespace affpcl
