#include "affpcl/method/wga.h"

#include <algorithm>

#include "affpcl/base/error.h"

namespace affpcl {

const Params<Wga::Config>& Wga::params() {
  static const Params<Config> kParams = {
      {"weight", &Config::weight, "of the mean direction of all agents in an agent's step",
       between(0, 1)},
      {"beta", &Config::beta, "share of a step in the running bias correction; 0: no correction",
       between(0, 1)},
  };
  return kParams;
}

MethodKind Wga::kind() {
  return method_kind_of<Wga>(
      "wga", "own and mean direction mixed, its bias corrected (Chayti et al. 2022)");
}

void Wga::declare(const Setup& setup, Layout& agent, Layout&, SumLayout& sum) {
  if (setup.problem.means() == nullptr)
    throw BadInput(
        "wga needs the directions of all agents at every agent's own model, which are one sum only "
        "where directions are linear, A(s) x - b(s); this problem's are not");
  const int d = setup.problem.shape().d;
  x_ = agent.add("x", d);
  c_ = agent.add("c", d);
  A_ = sum.add("A", d * d);
  b_ = sum.add("b", d);
}

void Wga::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const Batch& batch = block.batch;
  const int d = x_.rows;
  const double share = 1.0 / batch.all_samples();
  const Out column = scratch.rows(d);
  double* unit = scratch.numbers(static_cast<std::size_t>(d));
  std::fill_n(unit, d, 0.0);
  for (int k = 0; k < batch.steps; ++k)
    for (int m = 0; m < batch.samples(k); ++m) {
      for (int c = 0; c < d; ++c) {
        unit[c] = 1;
        block.problem().direction(block.lanes(), batch.s(k, m), {}, {unit, d, 1}, scratch, column);
        unit[c] = 0;
        message.add({A_.at + c * d, d}, column, share);
      }
      message.add(b_, batch.b(k, m), share);
    }
}

void Wga::mean_direction(Mean mean, In x, int lanes, Out h) const {
  const double* A = mean[A_].p;
  for (int r = 0; r < h.rows; ++r) {
    std::fill_n(h.row(r), lanes, -mean[b_].p[r]);
    for (int c = 0; c < h.rows; ++c)
      for (int l = 0; l < lanes; ++l) h.row(r)[l] += A[c * h.rows + r] * x.row(c)[l];
  }
}

void Wga::update(const Block& block, Mean mean) const {
  Scratch& scratch = block.scratch();
  const Out x = block.agents[x_], c = block.agents[c_], g = scratch.rows(x.rows),
            h = scratch.rows(x.rows), gap = scratch.rows(x.rows);
  for (int k = 0; k < block.batch.steps; ++k) {
    direction(block, k, x, g);
    mean_direction(mean, x, block.lanes().count, h);
    subtract(h, g, gap);
    add_scaled(g, config_.weight, gap);
    add_scaled(g, config_.weight, c);
    descend(x, block.step_sizes(k), g);
    add_scaled(gap, 1, c);
    add_scaled(c, -config_.beta, gap);  // c += beta (g - h - c)
  }
}

}  // namespace affpcl
