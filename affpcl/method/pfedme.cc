#include "affpcl/method/pfedme.h"

#include <algorithm>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<PFedMe::Config>& PFedMe::params() {
  static const Params<Config> kParams = {
      {"lambda", &Config::lambda, kPullDoc, between(0, 1e9)},
      {"form", &Config::published, kForms, kFormDoc},
      {"inner", &Config::inner, "published: gradient steps on the proximal problem",
       between(1, 1000)},
      {"beta", &Config::beta, "published: how far the server follows the mean", above(0, 2)},
      {"outer", &Config::outer,
       "published: step of an agent's copy of the common model; 0: the step size", between(0, 1e6)},
  };
  return kParams;
}

MethodKind PFedMe::kind() {
  return method_kind_of<PFedMe>(
      "pfedme", "each agent's model as a proximal point of the common one (T. Dinh et al. 2020)");
}

void PFedMe::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  x_ = agent.add("x", setup.problem.shape().d);
  w_ = centre.add("w", x_.rows);
  sent_ = sum.add("sent", x_.rows);
}

void PFedMe::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(w_), central_start(problem).x);
}

void PFedMe::contribute(const Block& block, Message message) const {
  const Out theta = block.agents[x_];
  if (!config_.published) return message.add(sent_, theta);

  Scratch& scratch = block.scratch();
  const Out w = scratch.rows(x_.rows), moved = scratch.rows(x_.rows), g = scratch.rows(x_.rows);
  fill(moved, 0);
  for (int k = 0; k < block.batch.steps; ++k) {
    copy(block.centre[w_], w);
    add_scaled(w, 1, moved);
    copy(w, theta);
    const In alpha = block.step_sizes(k);
    for (int i = 0; i < config_.inner; ++i) {
      direction(block, k, theta, g);
      add_pull(g, {config_.lambda, w}, theta);
      descend(theta, alpha, g);
    }
    const double outer = config_.outer > 0 ? config_.outer : block.central_step(k);
    subtract(w, theta, g);
    descend(moved, outer * config_.lambda, g);
  }
  message.add(sent_, moved);
}

void PFedMe::centre(const Round&, Mean mean, Centre centre) const {
  const std::span<double> w = centre.mutate(w_);
  const In sent = mean[sent_];
  for (std::size_t r = 0; r < w.size(); ++r)
    w[r] = config_.published ? w[r] + config_.beta * sent.p[r] : sent.p[r];
}

void PFedMe::update(const Block& block, Mean) const {
  if (!config_.published) local_steps(block, block.agents[x_], {config_.lambda, block.centre[w_]});
}

}  // namespace affpcl
