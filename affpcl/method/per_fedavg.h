// Per-FedAvg (Fallah, Mokhtari, Ozdaglar 2020): a common model w that is good after one gradient
// step on an agent's own data, the minimiser of mean_i f_i(w - beta grad f_i(w)). Local steps are
//
//   y = w - beta g_i(w),    w -= alpha (I - beta H_i(w)) g_i(y),    H_i the derivative of g_i
//
//   first_order   leaves H_i out
//   hessian_free  H_i v ~ (g_i(w + delta v) - g_i(w - delta v)) / (2 delta), exact where g is
//   linear
//
// What is scored is x_i = w - beta g_i(w) at the round's last step. The paper draws a batch for
// each of g_i(w), g_i(y) and H_i; here they are thirds of the step's batch. Of two samples H_i has
// the first again, and a single sample serves all three. As a sum: the displacements, d numbers.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class PerFedAvg final : public Method {
 public:
  struct Config {
    bool hessian_free = false;
    double beta = 0;  // the step on an agent's own data; 0: the run's step size
    double delta = 1e-3;
  };
  explicit PerFedAvg(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
  }
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return centre[w_]; }

 private:
  double beta(const Block& block, int k) const {
    return config_.beta > 0 ? config_.beta : block.central_step(k);
  }
  void meta_direction(const Block& block, int k, In w, Out h) const;

  Config config_;
  Field x_;      // per agent
  Field w_;      // centre
  Field moved_;  // sum: displacements
};

}  // namespace affpcl
