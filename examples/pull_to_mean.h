// A method of one's own, to copy: every agent learns alone and then moves a share of the way
// towards the mean of all.
//
// Fill in three functions (contribute, centre, update), name what you keep (declare), describe your
// parameters once (params), add your kind() to the list in affpcl/method/catalogue.cc (or call
// add_method_kind from your own program). Specs, sweeps, tables, saving and the conformance tests
// come free.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl::examples {

class PullToMean final : public Method {
 public:
  struct Config {
    double share = 0.1;
  };
  explicit PullToMean(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, Agents agents) const override {
    start_agents(problem, agents, x_);
  }
  void contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                  Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Round& round, const Batch& batch, Agents agents, Centre centre,
              Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  Config config_;
  Field x_;     // per agent
  Field mean_;  // centre: what everybody knows
  Field sent_;  // sum: what travels
};

}  // namespace affpcl::examples
