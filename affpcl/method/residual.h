// The central-local decomposition as a method: a common model w by FedAvg, and each agent's
// residual u_i learnt from its own samples on top of it,
//
//   x_i = w + u_i,    u_i -= alpha g_i(w + u_i)
//
// so that an agent has all of the common model from the first step on, and corrects it as it sees
// more. It is not unbiased variance reduction: the noise of labels, which AffPCL cannot average, is
// averaged in w; what is left in u_i is the agent's own.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Residual final : public Method {
 public:
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override {
    start_agents(problem, agents, x_);
  }
  void contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                  Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Round& round, const Batch& batch, Agents agents, Centre centre,
              Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return centre[w_]; }
  bool rests() const override { return false; }

 private:
  Field x_, w_, moved_;
};

}  // namespace affpcl
