// Weighted gradient averaging with bias correction (Chayti et al. 2022): each agent's step mixes
// its own direction with the mean of all directions at its own model,
//
//   x_i -= alpha ((1 - a) g_i(x_i) + a (h(x_i) + c_i)),    h(x) = mean_j g_j(x)
//   c_i += beta (g_i(x_i) - h(x_i) - c_i)
//
// with a the weight of the others. Without the correction c_i (beta = 0) it is biased. c_i in a
// step is from the steps before it, so that it is independent of the step's noise; the paper's may
// include it. The paper's mean leaves agent i out, which is the same method at another a.
//
// As a sum: h at n models. Where G(s, x) = A(s) x that is one sum of A_j and b_j, d (d + 1)
// numbers; any other problem is refused, for there it takes n directions of every agent.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Wga final : public Method {
 public:
  struct Config {
    double weight = 0.5;  // a
    double beta = 0.05;   // 0: no bias correction
  };
  explicit Wga(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
  }
  void contribute(const Block& block, Message message) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  void mean_direction(Mean mean, In x, int lanes, Out h) const;

  Config config_;
  Field x_, c_;  // per agent
  Field A_, b_;  // sum: A column after column, b
};

}  // namespace affpcl
