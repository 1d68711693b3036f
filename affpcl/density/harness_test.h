// Drives one ratio through rounds whose samples are given, without a method around it: g(s) is
// then a fixed function of the sample, as with x^c and theta^c frozen.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "affpcl/density/ratio.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {

class RatioHarness {
 public:
  using Direction = std::function<double(int state, int row)>;
  using Samples = std::vector<int>;  // the state of every agent; one block at most

  RatioHarness(const Problem& problem, std::unique_ptr<Ratio> ratio, Direction g)
      : problem_(problem), ratio_(std::move(ratio)), g_(std::move(g)) {
    ratio_->declare(problem, agent_, centre_, sum_);
    agents_ = Store(agent_.rows(), problem.shape().agents);
    shared_ = Buffer(static_cast<std::size_t>(centre_.rows()));
    mean_ = Buffer(static_cast<std::size_t>(sum_.size()));
    s_ = Buffer(kLanes), one_ = Buffer(kLanes);
    gs_ = Buffer(static_cast<std::size_t>(problem.shape().d) * kLanes);
    rg_ = Buffer(static_cast<std::size_t>(problem.shape().d) * kLanes);
  }

  // One round of K samples of every agent.
  void round_of(const std::vector<Samples>& samples) {
    const auto n = static_cast<double>(problem_.shape().agents);
    const Agents agents = agents_.block(0);
    const auto K = static_cast<int>(samples.size());
    const Block block = next(K);
    std::fill(mean_.span().begin(), mean_.span().end(), 0.0);
    bool first = true;
    for (const Samples& states : samples) {
      for (int l = 0; l < agents.lanes.count; ++l) {
        const int state = states[static_cast<std::size_t>(l)];
        s_.data()[l] = state;
        for (int r = 0; r < d(); ++r) direction().row(r)[l] = g_(state, r) / K;
      }
      ratio_->contribute(block, {s_.data(), 1}, direction(), std::exchange(first, false),
                         Message(mean_.data(), agents.lanes));
    }
    for (double& x : mean_.span()) x /= n;
    ratio_->centre(block.round, {mean_.data()}, block.centre);
    ratio_->correct(block, {mean_.data()}, {rg_.data(), d()});
    first_ += K;
  }
  void round(const Samples& states) { round_of({states}); }

  double rg(int agent, int row) const { return rg_.data()[row * kLanes + agent]; }
  double rho(int agent, int state) {  // as the last round had it
    std::fill_n(s_.data(), kLanes, state);
    ratio_->own(next(1), {s_.data(), 1}, {one_.data(), 1});
    return one_.data()[agent];
  }
  StepSizes& steps() { return steps_; }
  std::uint32_t replicate = 0;  // of the draws of the ratio's own

 private:
  int d() const { return problem_.shape().d; }
  Out direction() const { return {gs_.data(), d()}; }
  Block next(int steps) {
    scratch_.clear();
    return {.round = {problem_, steps_, first_, steps, scratch_, {1, replicate, 0}},
            .batch = {},
            .agents = agents_.block(0),
            .centre = {shared_.data()}};
  }

  const Problem& problem_;
  std::unique_ptr<Ratio> ratio_;
  Direction g_;
  Layout agent_, centre_;
  SumLayout sum_;
  Store agents_;
  Buffer shared_, mean_, s_, one_, gs_, rg_;
  Scratch scratch_;
  StepSizes steps_;
  std::int64_t first_ = 0;
};

// The ratio that a spec's keys ask for.
inline std::unique_ptr<Ratio> ratio_of(const std::map<std::string, Value>& given) {
  return make_ratio(Values(ratio_params(), given, "method"));
}

}  // namespace affpcl
