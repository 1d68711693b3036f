// Independent learning: x_i -= alpha g_i(x_i). The baseline of every other method.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Independent final : public Method {
 public:
  static MethodKind kind();
  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
  }
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  Field x_;
};

}  // namespace affpcl
