// Fine-tuning: FedAvg for a share of the run, then every agent goes on alone from the common model.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class FineTune final : public Method {
 public:
  struct Config {
    double together =
        0.5;  // share of the steps spent on the common model; the switch is at a round's start
  };
  explicit FineTune(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Round& round, const Batch& batch, Agents agents, Centre centre,
                  Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Round& round, const Batch& batch, Agents agents, Centre centre,
              Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }
  In central_x(Centre centre) const override { return centre[w_]; }

 private:
  bool together(const Round& round) const { return round.first < switch_at_; }

  Config config_;
  std::int64_t switch_at_ = 0;
  Field x_, w_, moved_;
};

}  // namespace affpcl
