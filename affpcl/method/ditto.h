// Ditto (Li et al. 2021): a common model w by FedAvg, and for every agent a model of its own that
// is pulled towards it:
//
//   v_i -= alpha (g_i(v_i) + lambda (v_i - w))
//
// A simplified form ("figure"; ours, for the paper gives no details) pulls towards the w from after
// the round's sum, the published algorithm towards the one from before.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class Ditto final : public Method {
 public:
  struct Config {
    double lambda = 15;      // strength of the pull
    bool published = false;  // pull towards the w from before the sum
  };
  explicit Ditto(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key&, Centre centre) const override {
    common_.start(problem, centre);
  }
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[v_]);
  }
  void contribute(const Block& block, Message message) const override {
    common_.contribute(block, message);
  }
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[v_]; }
  In central_x(Centre centre) const override { return common_.w(centre); }

 private:
  Config config_;
  CommonModel common_;
  Field v_;       // per agent
  Field before_;  // centre: w from before the round's sum
};

}  // namespace affpcl
