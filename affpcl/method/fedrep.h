// FedRep (Collins et al. 2021) with a linear representation: x_i = B w_i, a basis B (d x r,
// orthonormal columns) that all agents share and a head w_i of each agent's own. A round takes
// local steps on B with the heads fixed, averages and orthonormalises it, and then moves the heads,
//
//   B -= alpha^c g_i(B w_i) w_i',    B = QR of the mean,    w_i -= alpha^i B'g_i(B w_i)
//
// `head_steps` times for each local step. The paper begins a round with the heads: the same
// sequence half a round later. Its start of B by moments is left out: B starts at random.
// Problems whose unknowns do not start at 0 are refused. As a sum: the displacements of B, d r
// numbers.
#pragma once

#include "affpcl/method/method.h"

namespace affpcl {

class FedRep final : public Method {
 public:
  struct Config {
    int rank = 2;        // r
    int head_steps = 5;  // for each local step
  };
  explicit FedRep(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) override;
  void start(const Problem& problem, const Key& key, Centre centre) const override;
  void contribute(const Block& block, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void update(const Block& block, Mean mean) const override;
  In solution(Agents agents, Centre) const override { return agents[x_]; }

 private:
  void combine(In B, In w, int lanes, Out x) const;  // x = B w
  void orthonormalise(std::span<double> B) const;    // QR by Gram-Schmidt

  Config config_;
  int r_ = 0;
  Field w_, x_;  // per agent: the head, and B w_i
  Field B_;      // centre: column after column
  Field moved_;  // sum: displacements of B
};

}  // namespace affpcl
