// Learning alone: x_i -= alpha g_i(x_i). What every other method is measured against.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Independent final : public Method {
 public:
  static MethodKind kind();
  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, Agents agents) const override {
    start_agents(problem, agents, x_);
  }
  void update(const Round& round, const Batch& batch, Agents agents, Centre centre,
              Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  Field x_;
};

}  // namespace affpcl
