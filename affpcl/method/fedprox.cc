#include "affpcl/method/fedprox.h"

namespace affpcl {

const Params<FedProx::Config>& FedProx::params() {
  static const Params<Config> kParams = {
      {"mu", &Config::mu, "strength of the pull towards the model a round starts from",
       between(0, 1e9)},
  };
  return kParams;
}

MethodKind FedProx::kind() {
  return method_kind_of<FedProx>(
      "fedprox", "FedAvg with local steps pulled back to the common model (T. Li et al. 2020)");
}

}  // namespace affpcl
