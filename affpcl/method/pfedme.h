// pFedMe (T. Dinh et al. 2020): personal models as proximal points of a common one.
//
// A simplified form ("figure"; ours, for the paper gives no details) is a single loop:
//   x_i -= alpha (g_i(x_i) + lambda (x_i - mean_j x_j)).
// As published, each local step solves the proximal problem by `inner` gradient steps,
//   theta ~ argmin f_i(theta) + lambda/2 |theta - w_i|^2,    w_i -= outer lambda (w_i - theta),
// and the server mixes
//   w = (1 - beta) w + beta mean_i w_i.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class PFedMe final : public Method {
 public:
  struct Config {
    double lambda = 15;  // strength of the pull
    bool published = false;
    int inner = 5;     // published: gradient steps on the proximal problem
    double beta = 1;   // published: how far the server follows the mean
    double outer = 0;  // published: step of w_i; 0: the run's step size
  };
  explicit PFedMe(const Config& config) : config_(config) {}
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
  Config config_;
  Field x_, w_;  // personal models; the common one (the figure: their mean before the round)
  Field sent_;   // sum: x_i, or the displacement of w_i
};

}  // namespace affpcl
