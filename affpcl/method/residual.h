// The central-local decomposition as a method: a common model w by FedAvg, and each agent's
// residual u_i learnt from its own samples on top of it,
//
//   x_i = w + u_i,    u_i -= alpha g_i(w + u_i)
//
// so that an agent has all of the common model from the first step on, and corrects it as it sees
// more. It is not unbiased variance reduction: the noise of labels, which AffPCL cannot average, is
// averaged in w; what is left in u_i is the agent's own.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class Residual final : public Method {
 public:
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key&, Centre centre) const override {
    common_.start(problem, centre);
  }
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
  }
  void contribute(const Block& block, Message message) const override {
    common_.contribute(block, message);
  }
  void centre(const Round&, Mean mean, Centre centre) const override {
    common_.centre(mean, centre);
  }
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return common_.w(centre); }
  bool rests() const override { return false; }

 private:
  CommonModel common_;
  Field x_;  // per agent: w + u_i
};

}  // namespace affpcl
