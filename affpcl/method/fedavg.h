// Federated averaging (eq:fl; McMahan et al. 2017): one model for all. Each agent takes K local
// steps from it; the model moves by the mean of the displacements.
#pragma once

#include "affpcl/method/common_model.h"

namespace affpcl {

class FedAvg final : public Method {
 public:
  static MethodKind kind();
  void declare(const Setup& setup, Layout&, Layout& centre, SumLayout& sum) override {
    model_.declare(setup, centre, sum, "x");
  }
  void start(const Problem& problem, const Key&, Centre centre) const override {
    model_.start(problem, centre);
  }
  void contribute(const Block& block, Message message) const override {
    model_.contribute(block, message);
  }
  void centre(const Round&, Mean mean, Centre centre) const override {
    model_.centre(mean, centre);
  }
  void update(const Block&, Mean) const override {}
  In solution(Agents, Centre centre) const override { return model_.w(centre); }
  In central_x(Centre centre) const override { return model_.w(centre); }

 private:
  CommonModel model_;
};

}  // namespace affpcl
