// All-for-all (Even, Massoulie, Scaman 2022): every agent sends its direction at its own model
// once, and each model moves by a weighted sum of them,
//
//   x_i -= alpha sum_j W_ij g_j(x_j),    W = Lambda Lambda'
//
// which is stochastic gradient descent on y -> sum_i f_i((Lambda y)_i) with x = Lambda y. Here
//
//   W_ij = sum_e xi_ie xi_je / sum_j xi_je
//
// with xi_ie the share of anchor e in agent i (oracle_weights.h): symmetric, positive semidefinite,
// rows that sum to 1, rank p. Directions of a round of K steps are taken along the agent's own K
// local steps. Estimated weights are not offered (all_for_one.h says why). As a sum: sum_j
// xi_je (displacement of j, 1), p (d + 1) numbers.
#pragma once

#include "affpcl/method/oracle_weights.h"

namespace affpcl {

class AllForAll final : public Method {
 public:
  using Config = OracleWeights::Config;
  explicit AllForAll(const Config& config) : weights_(config) {}
  static const Params<Config>& params() { return OracleWeights::params(); }
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, Agents agents) const override;
  void contribute(const Block& block, Message message) const override;
  std::vector<std::string_view> uncompressed() const override { return {"weight"}; }
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  OracleWeights weights_;
  Field x_, xi_;   // per agent
  Field weight_;   // sum: p
  Product moved_;  // sum: p x d
};

}  // namespace affpcl
