#include "affpcl/method/scaffold.h"

#include "affpcl/method/local_steps.h"

namespace affpcl {

MethodKind Scaffold::kind() {
  return method_kind_of<Scaffold>(
      "scaffold", "FedAvg with control variates against drift (Karimireddy et al. 2020)");
}

void Scaffold::declare(const Setup& setup, Layout& agent, Layout& centre, SumLayout& sum) {
  const int d = setup.problem.shape().d;
  ci_ = agent.add("c_i", d);
  x_ = centre.add("x", d);
  c_ = centre.add("c", d);
  moved_ = sum.add("moved", d);
  dc_ = sum.add("dc", d);
}

void Scaffold::start(const Problem& problem, const Key&, Centre centre) const {
  set(centre.mutate(x_), central_start(problem).x);
}

void Scaffold::contribute(const Block& block, Message message) const {
  Scratch& scratch = block.scratch();
  const Centre centre = block.centre;
  const int d = x_.rows;
  const Out ci = block.agents[ci_], drift = scratch.rows(d), y = scratch.rows(d),
            moved = scratch.rows(d), g = scratch.rows(d), change = scratch.rows(d);
  subtract(centre[c_], ci, drift);  // c - c_i
  fill(moved, 0);
  double alphas = 0;
  for (int k = 0; k < block.batch.steps; ++k) {
    const double alpha = block.central_step(k);
    copy(centre[x_], y);
    add_scaled(y, 1, moved);
    direction(block, k, y, g);
    add_scaled(g, 1, drift);
    descend(moved, alpha, g);
    alphas += alpha;
  }
  fill(change, 0);  // new c_i - c_i = -c - moved / alphas
  add_scaled(change, -1, centre[c_]);
  add_scaled(change, -1 / alphas, moved);
  add_scaled(ci, 1, change);
  message.add(moved_, moved);
  message.add(dc_, change);
}

void Scaffold::centre(const Round& round, Mean mean, Centre centre) const {
  shift(centre.mutate(x_), mean[moved_]);
  // c is the mean of all c_i, and those of absent agents stay.
  const double share = static_cast<double>(round.count_present()) /
                       static_cast<double>(round.problem.shape().agents);
  const std::span<double> c = centre.mutate(c_);
  for (std::size_t r = 0; r < c.size(); ++r) c[r] += share * mean[dc_].p[r];
}

}  // namespace affpcl
