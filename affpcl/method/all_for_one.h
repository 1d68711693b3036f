// All-for-one (Even, Massoulie, Scaman 2022): an agent follows the directions of all others at its
// own model, weighted by how near they are,
//
//   x_i -= alpha sum_j lambda_ij g_j(x_i),    lambda_ij >= 0,    sum_j lambda_ij = 1
//
// lambda_ij = k_je / sum_j k_je with e the anchor nearest to i (oracle_weights.h): agents with the
// same anchor have the same weights, hence the same model, and p models at the centre are enough.
// With as many anchors as agents the weights are those of pairs, as in the paper. Weights estimated
// from data are not offered: the paper compares all pairs of agents, n^2 numbers, and p of them
// would be a clustering (ifca). As a sum: sum_j k_je (displacement from model e, 1), p (d + 1)
// numbers; each agent evaluates p directions.
#pragma once

#include "affpcl/method/oracle_weights.h"

namespace affpcl {

class AllForOne final : public Method {
 public:
  using Config = OracleWeights::Config;
  explicit AllForOne(const Config& config) : weights_(config) {}
  static const Params<Config>& params() { return OracleWeights::params(); }
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  std::vector<std::string_view> uncompressed() const override { return {"weight"}; }
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  int models() const { return weights_.rank(); }

  OracleWeights weights_;
  Field x_, k_, anchor_;  // per agent
  Field w_;               // centre: p x d
  Field moved_, weight_;  // sum: p x d, p
};

}  // namespace affpcl
