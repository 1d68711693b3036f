// Fine-tuning: FedAvg for a share of the run, then independent learning from the common model.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class FineTune final : public Method {
 public:
  struct Config {
    // Share of the steps spent on the common model; the switch is at the start of a round.
    double together = 0.5;
  };
  explicit FineTune(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key&, Centre centre) const override {
    common_.start(problem, centre);
  }
  void start(const Problem& problem, Agents agents) const override {
    problem.start(agents.lanes, agents[x_]);
  }
  void contribute(const Block& block, Message message) const override;
  void centre(const Round&, Mean mean, Centre centre) const override {
    common_.centre(mean, centre);
  }
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return common_.w(centre); }

 private:
  bool together(const Round& round) const { return round.first < switch_at_; }

  Config config_;
  std::int64_t switch_at_ = 0;
  CommonModel common_;
  Field x_;  // per agent
};

}  // namespace affpcl
