// Federated averaging (eq:fl): one model for all. Each agent takes K local steps from it; the model
// moves by the mean of the displacements.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class FedAvg final : public Method {
 public:
  static MethodKind kind();
  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                  Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Round&, const Batch&, Agents, Centre, Mean) const override {}
  In solution(Agents, Centre centre) const override { return centre[x_]; }
  In central_x(Centre centre) const override { return centre[x_]; }

 private:
  Field x_, moved_;
};

}  // namespace affpcl
