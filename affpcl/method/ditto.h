// Ditto (Li et al. 2021): a common model w by FedAvg, and for every agent a model of its own that
// is pulled towards it:
//
//   v_i -= alpha (g_i(v_i) + lambda (v_i - w))
//
// A simplified form ("figure"; ours, for the paper gives no details) pulls towards the w of after
// the round's sum, the published algorithm towards the one of before.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Ditto final : public Method {
 public:
  struct Config {
    double lambda = 15;      // strength of the pull
    bool published = false;  // pull towards the w of before the sum
  };
  explicit Ditto(const Config& config) : config_(config) {}
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
  In solution(Agents agents, Centre) const override { return agents[v_]; }
  In central_x(Centre centre) const override { return centre[w_]; }

 private:
  Config config_;
  Field v_, w_, before_, moved_;
};

}  // namespace affpcl
