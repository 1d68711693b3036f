#include "affpcl/method/local_steps.h"

#include <algorithm>

namespace affpcl {

In local_displacement(const Block& block, In start, double pull) {
  Scratch& scratch = block.scratch();
  const Out moved = scratch.rows(start.rows), x = scratch.rows(start.rows),
            g = scratch.rows(start.rows);
  fill(moved, 0);
  for (int k = 0; k < block.batch.steps; ++k) {
    if (k > 0) copy(start, x), add_scaled(x, 1, moved);
    direction(block, k, k == 0 ? start : In(x), g);
    if (pull > 0) add_scaled(g, pull, moved);
    descend(moved, block.central_step(k), g);
  }
  return moved;
}

void add_pull(Out g, const Pull& pull, In x) {
  if (pull.lambda == 0) return;
  add_scaled(g, pull.lambda, x);
  add_scaled(g, -pull.lambda, pull.to);
}

void local_steps(const Block& block, Out x, const Pull& pull) {
  const Out g = block.scratch().rows(x.rows);
  for (int k = 0; k < block.batch.steps; ++k) {
    direction(block, k, x, g);
    add_pull(g, pull, x);
    descend(x, block.step_sizes(k), g);
  }
}

void descend(Out x, double alpha, In g) { descend(x, In{&alpha, 1, 1}, g); }

void set(std::span<double> to, const std::vector<double>& from) {
  std::copy(from.begin(), from.end(), to.begin());
}

void shift(std::span<double> x, In by) {
  for (std::size_t r = 0; r < x.size(); ++r) x[r] += by.p[r];
}

}  // namespace affpcl
