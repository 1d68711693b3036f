#include "affpcl/method/l2gd.h"

#include <algorithm>

#include "affpcl/method/local_steps.h"

namespace affpcl {

const Params<L2gd::Config>& L2gd::params() {
  static const Params<Config> kParams = {
      {"lambda", &Config::lambda, "strength of the pull towards the mean of all models",
       between(0, 1e9)},
      {"p", &Config::p, "probability that a round averages instead of learning",
       between(0.001, 0.999)},
  };
  return kParams;
}

MethodKind L2gd::kind() {
  return method_kind_of<L2gd>(
      "l2gd",
      "models near their mean: gradient or averaging steps by a coin (Hanzely and Richtarik 2020)");
}

void L2gd::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  x_ = agent.add("x", setup.problem.shape().d);
  xbar_ = centre.add("xbar", x_.rows);
  sent_ = sum.add("sent", x_.rows);
}

void L2gd::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(xbar_), central_start(problem).x);
}

bool L2gd::averages(const Round& round) const {
  Key key = round.key;
  key.step = static_cast<std::uint32_t>(round.first);
  return uniform(key, 0, Purpose::kMethod, 0) < config_.p;
}

void L2gd::contribute(const Block& block, Message message) const {
  if (averages(block.round)) message.add(sent_, block.agents[x_]);
}

void L2gd::centre(const Round& round, Mean mean, Centre centre) const {
  if (averages(round)) std::copy_n(mean[sent_].p, xbar_.rows, centre.mutate(xbar_).begin());
}

void L2gd::update(const Block& block, Mean) const {
  Scratch& scratch = block.scratch();
  const Out x = block.agents[x_], g = scratch.rows(x.rows), scaled = scratch.rows(x.rows);
  const bool average = averages(block.round);
  const double factor = average ? config_.lambda / config_.p : 1 / (1 - config_.p);
  for (int k = 0; k < block.batch.steps; ++k) {
    if (average)
      subtract(x, block.centre[xbar_], g);
    else
      direction(block, k, x, g);
    fill(scaled, 0);
    add_scaled(scaled, factor, g);
    descend(x, block.step_sizes(k), scaled);
  }
}

}  // namespace affpcl
