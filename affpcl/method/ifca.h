// Clustered federated learning (IFCA, Ghosh et al. 2020): several common models; each agent follows
// the one that fits it best, and a model moves by the mean of its followers. The choice is local:
// only one-hot sums and counts travel.
//
// A simplified form ("figure"; ours, for the paper gives no details) chooses by |Abar^i w -
// bbar^i|^2 with exact means; as published, by the loss on the round's samples.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class Ifca final : public Method {
 public:
  struct Config {
    int clusters = 10;
    double start_scale = 0.01;  // models start at start_scale N(0, I): equal ones could never part
    bool published = false;     // choose by the sampled loss
  };
  explicit Ifca(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  std::vector<std::string_view> uncompressed() const override { return {"followers"}; }
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  // Writes every agent's cluster: the least residual.
  void choose(const Block& block) const;
  void mean_loss(Agents agents, In w, Out y, Out loss) const;
  In model(Centre centre, int c) const { return {centre[w_].p + c * x_.rows, x_.rows, 1}; }
  void own_model(Agents agents, Centre centre, Out x) const;

  Config config_;
  Field x_, cluster_;  // per agent: its model's copy, which one it is
  Field Abar_, bbar_;  // per agent, form figure: the exact means
  Field w_;            // centre: clusters x d
  Product moved_;      // sum: one-hot(cluster) displacement'
  Product followers_;  // sum: one-hot(cluster)
};

}  // namespace affpcl
