#include "affpcl/method/fedavg.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind FedAvg::kind() {
  return method_kind_of<FedAvg>(
      "fedavg", "one model for all agents: the mean of their steps (McMahan et al. 2017)");
}

void FedAvg::declare(const Setup& setup, Layout&, Layout& centre, SumLayout& sum) {
  x_ = centre.add("x", setup.problem.shape().d);
  moved_ = sum.add("moved", x_.rows);
}

void FedAvg::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(x_), problem.start_xc());
}

void FedAvg::contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                        Message message) const {
  message.add(moved_, local_displacement(round, agents.lanes, batch, centre[x_]));
}

void FedAvg::centre(const Round&, Mean mean, Centre centre) const {
  shift(centre.mutate(x_), mean[moved_]);
}

}  // namespace affpcl
