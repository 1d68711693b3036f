// SCAFFOLD (Karimireddy et al. 2020): FedAvg whose local steps are corrected for drift by control
// variates,
//
//   y -= alpha (g_i(y) - c_i + c),   c_i = c_i - c + (x - y_K) / sum_k alpha_k   (their option II)
//
// It finds the common model, not each agent's own. With one local step it is FedAvg.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Scaffold final : public Method {
 public:
  static MethodKind kind();
  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block&, Mean) const override {}
  In solution(Agents, Centre centre) const override { return centre[x_]; }
  In central_x(Centre centre) const override { return centre[x_]; }

 private:
  Field ci_;          // per agent
  Field x_, c_;       // centre
  Field moved_, dc_;  // sum: displacement, change of c_i
};

}  // namespace affpcl
