// Weights between agents, of rank p, from the true solutions: what all-for-one and all-for-all
// assume to be known. Anchors c_1..c_p are true solutions far from each other (all of them where
// p >= n), and
//
//   k_ie = exp(-|x^i_* - c_e|^2 / (2 width^2))
//
// is how near agent i is to anchor e. A width far above all distances treats all agents alike, one
// far below them keeps each anchor's agents to themselves.
#pragma once

#include <vector>

#include "affpcl/method/method.h"

namespace affpcl {

class OracleWeights {
 public:
  struct Config {
    int rank = 20;  // p, at most n
    double width = 0.3;
  };
  static const Params<Config>& params();
  explicit OracleWeights(const Config& config) : config_(config) {}

  // Chooses the anchors; BadInput where the true solutions are not known.
  void declare(const Setup& setup);
  int rank() const { return p_; }
  // k_ie, p rows; `nearest` gives each agent's nearest anchor, one row.
  void near(const Problem& problem, Agents agents, Out k, Out nearest) const;
  // The same divided by its sum over e.
  void shares(const Problem& problem, Agents agents, Out xi) const;

 private:
  // |x^i_* - c_e|^2 / (2 width^2)
  double distance(const Problem& problem, std::int64_t agent, int e) const;

  Config config_;
  int d_ = 0, p_ = 0;
  std::vector<double> anchors_;  // [p][d]
};

}  // namespace affpcl
