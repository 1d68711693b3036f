#include "affpcl/method/oracle_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/problem/some_agents.h"

namespace affpcl {
namespace {

double square_to(const Problem& problem, std::int64_t agent, const double* point, int d) {
  const In x = problem.truth()->x.block(agent / kLanes)[Field{0, d}];
  double square = 0;
  for (int r = 0; r < d; ++r) {
    const double off = x.at(r, static_cast<int>(agent % kLanes)) - point[r];
    square += off * off;
  }
  return square;
}

}  // namespace

const Params<OracleWeights::Config>& OracleWeights::params() {
  static const Params<Config> kParams = {
      {"rank", &Config::rank, "anchors that weights are made of; with all agents, weights of pairs",
       between(1, 10000)},
      {"width", &Config::width, "distance of true solutions within which agents help each other",
       above(0, 1e9)},
  };
  return kParams;
}

// Farthest first, beginning with the solution farthest from the centre's: no order of agents
// matters.
void OracleWeights::declare(const Setup& setup) {
  const Problem& problem = setup.problem;
  need_all_agents(problem, "all_for_one and all_for_all need");
  if (problem.truth() == nullptr)
    throw BadInput(
        "weights between agents come from their true solutions, which this problem does not have; "
        "use ifca, which learns who belongs together");
  d_ = problem.shape().d;
  const std::int64_t n = problem.shape().agents;
  p_ = static_cast<int>(std::min<std::int64_t>(config_.rank, n));
  anchors_.clear();
  std::vector<double> nearest(static_cast<std::size_t>(n), std::numeric_limits<double>::infinity());
  const double* newest = problem.truth()->xc.data();
  for (int e = 0; e < p_; ++e) {
    std::int64_t farthest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double& least = nearest[static_cast<std::size_t>(i)];
      const double square = square_to(problem, i, newest, d_);
      least = e <= 1 ? square : std::min(least, square);  // the centre itself is no anchor
      if (least > nearest[static_cast<std::size_t>(farthest)]) farthest = i;
    }
    const In x = problem.truth()->x.block(farthest / kLanes)[Field{0, d_}];
    for (int r = 0; r < d_; ++r) anchors_.push_back(x.at(r, static_cast<int>(farthest % kLanes)));
    newest = anchors_.data() + anchors_.size() - d_;
  }
}

double OracleWeights::distance(const Problem& problem, std::int64_t agent, int e) const {
  return square_to(problem, agent, anchors_.data() + static_cast<std::ptrdiff_t>(e) * d_, d_) /
         (2 * config_.width * config_.width);
}

void OracleWeights::near(const Problem& problem, Agents agents, Out k, Out nearest) const {
  for (int l = 0; l < agents.lanes.count; ++l) {
    double least = std::numeric_limits<double>::infinity();
    for (int e = 0; e < p_; ++e) {
      const double far = distance(problem, agents.lanes.first + l, e);
      if (far < least) least = far, nearest.p[l] = e;
      k.row(e)[l] = std::exp(-far);
    }
  }
}

void OracleWeights::shares(const Problem& problem, Agents agents, Out xi) const {
  for (int l = 0; l < agents.lanes.count; ++l) {
    double least = std::numeric_limits<double>::infinity(), total = 0;
    for (int e = 0; e < p_; ++e) {
      xi.row(e)[l] = distance(problem, agents.lanes.first + l, e);
      least = std::min(least, xi.row(e)[l]);
    }
    for (int e = 0; e < p_; ++e) total += xi.row(e)[l] = std::exp(least - xi.row(e)[l]);
    for (int e = 0; e < p_; ++e) xi.row(e)[l] /= total;
  }
}

}  // namespace affpcl
