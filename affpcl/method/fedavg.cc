#include "affpcl/method/fedavg.h"

namespace affpcl {

MethodKind FedAvg::kind() {
  return method_kind_of<FedAvg>(
      "fedavg", "one model for all agents: the mean of their steps (McMahan et al. 2017)");
}

}  // namespace affpcl
