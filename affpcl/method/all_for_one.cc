#include "affpcl/method/all_for_one.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind AllForOne::kind() {
  return method_kind_of<AllForOne>(
      "all_for_one",
      "weighted directions of all agents at each one's model, weights known (Even et al. 2022)");
}

void AllForOne::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  weights_.declare(setup);
  x_ = agent.add("x", setup.problem.shape().d);
  k_ = agent.add("k", models());
  anchor_ = agent.add("anchor", 1, models());
  w_ = centre.add("w", models() * x_.rows);
  moved_ = sum.add("moved", w_.rows);
  weight_ = sum.add("weight", models());
}

void AllForOne::start(const Problem& problem, const Key&, Centre centre) const {
  const std::vector<double> x0 = central_start(problem).x;
  const std::span<double> w = centre.mutate(w_);
  for (std::size_t j = 0; j < w.size(); ++j) w[j] = x0[j % x0.size()];
}

void AllForOne::start(const Problem& problem, Agents agents) const {
  problem.start(agents.lanes, agents[x_]);
  weights_.near(problem, agents, agents[k_], agents[anchor_]);
}

void AllForOne::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const int d = x_.rows;
  const Out weighted = scratch.rows(d), k = block.agents[k_];
  for (int e = 0; e < models(); ++e) {
    const Scratch::Frame frame(scratch);
    const In w{block.centre[w_].p + static_cast<std::ptrdiff_t>(e) * d, d, 1};
    scale(local_displacement(block, w), k.row(e), weighted);
    message.add({moved_.at + e * d, d}, weighted);
  }
  message.add(weight_, k);
}

void AllForOne::centre(const Round&, Mean mean, Centre centre) const {
  const std::span<double> w = centre.mutate(w_);
  const auto d = static_cast<std::size_t>(x_.rows);
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double weight = mean[weight_].p[j / d];
    if (weight > 0) w[j] += mean[moved_].p[j] / weight;
  }
}

void AllForOne::update(const Block& block, Mean) const {
  const Out x = block.agents[x_];
  const double *w = block.centre[w_].p, *anchor = block.agents[anchor_].p;
  for (int r = 0; r < x.rows; ++r)
    for (int l = 0; l < block.lanes().count; ++l)
      x.row(r)[l] = w[static_cast<std::ptrdiff_t>(anchor[l]) * x.rows + r];
}

}  // namespace affpcl
