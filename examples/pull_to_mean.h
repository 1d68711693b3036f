// A method to copy: every agent takes its own steps and then moves a share of the way towards the
// mean of all.
//
// Fill in three functions (contribute, centre, update), name the memory (declare), describe the
// parameters once (params). Then add kind() to the list in affpcl/method/catalogue.cc, or call
// register_method from a program of your own (own_method.cc, which says how to compile it).
// Specs, sweeps, tables, saving and the conformance tests come with that.
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
    problem.start(agents.lanes, agents[x_]);
  }
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  Config config_;
  Field x_;     // per agent
  Field mean_;  // centre: the mean of all x
  Field sent_;  // sum: what travels
};

}  // namespace affpcl::examples
