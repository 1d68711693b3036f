// L2GD (Hanzely and Richtarik 2020) for the mean-regularised objective, also called MR-MTL,
//
//   F(x_1, ..., x_n) = mean_i f_i(x_i) + lambda/2 mean_i |x_i - xbar|^2
//
// Each round one coin decides for all agents: a gradient step, or a step towards the mean,
//
//   with probability 1 - p    x_i -= alpha / (1 - p) g_i(x_i)
//   with probability p        x_i -= alpha lambda / p (x_i - xbar)
//
// so that the expected step is -alpha times n grad F. alpha is theirs divided by n. They need
// alpha lambda / p <= 1/2. A round of K steps takes K of the one or of the other kind. As a sum:
// x_i, d numbers, in rounds that average; in the others zeros.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class L2gd final : public Method {
 public:
  struct Config {
    double lambda = 1;
    double p = 0.2;  // how often agents average
  };
  explicit L2gd(const Config& config) : config_(config) {}
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
  In central_x(Centre centre) const override { return centre[xbar_]; }

 private:
  bool averages(const Round& round) const;  // the round's coin

  Config config_;
  Field x_;     // per agent
  Field xbar_;  // centre: the mean when it was last taken
  Field sent_;  // sum: x_i
};

}  // namespace affpcl
