// FedEM (Marfoq et al. 2021): every agent's distribution is a mixture of M that all share, so its
// model mixes M common ones, x_i = sum_m pi_im theta_m. A sample s of agent i has
//
//   q_m ~ pi_im exp(-loss_m / temperature),    loss_m = |g_i(theta_m; s)|^2 / 2      E step
//   theta_m -= alpha q_m g_i(theta_m; s),      pi_i = mean of q                      M step
//
// The paper's loss is a negative log-likelihood; a problem here has directions only, so the loss is
// half their square, which is the paper's where G(s, x) = x. The paper passes over an agent's rows
// again each round; samples here are new ones, so pi_i is a running mean: each round is a share
// `memory` of it. As a sum: the displacements of all theta_m, M d numbers; q and pi stay with the
// agent.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class FedEm final : public Method {
 public:
  struct Config {
    int components = 3;  // M
    double temperature = 1;
    double memory = 0.05;
    double start_scale = 0.01;  // theta_m start at start_scale N(0, I): equal ones could never part
  };
  explicit FedEm(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  void responsibilities(Agents agents, In g, Out q) const;  // the E step of one sample

  Config config_;
  int d_ = 0;
  Field x_, pi_, q_;  // per agent; q: mean over the round's samples
  Field theta_;       // centre: M x d
  Field moved_;       // sum: displacements
};

}  // namespace affpcl
