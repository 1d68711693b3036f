// FedProx (T. Li et al. 2020): FedAvg whose local steps are pulled back to the model they start
// from,
//
//   y -= alpha (g_i(y) + mu (y - w)),    w += mean_i (y_i - w)
//
// so that long rounds on unlike agents drift less. It finds one model for all. The first local step
// has no pull: with one step a round it is FedAvg. As a sum: the displacements, d numbers.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class FedProx final : public Method {
 public:
  struct Config {
    double mu = 1;  // strength of the pull
  };
  explicit FedProx(const Config& config) : config_(config) {}
  static const Params<Config>& params();
  static MethodKind kind();

  void declare(const Setup& setup, Layout&, Layout& centre, SumLayout& sum) override {
    model_.declare(setup, centre, sum);
  }
  void start(const Problem& problem, const Key&, Centre centre) const override {
    model_.start(problem, centre);
  }
  void contribute(const Block& block, Message message) const override {
    model_.contribute(block, message, config_.mu);
  }
  void centre(const Round&, Mean mean, Centre centre) const override {
    model_.centre(mean, centre);
  }
  void update(const Block&, Mean) const override {}
  In solution(Agents, Centre centre) const override { return model_.w(centre); }
  In central_x(Centre centre) const override { return model_.w(centre); }

 private:
  Config config_;
  CommonModel model_;
};

}  // namespace affpcl
