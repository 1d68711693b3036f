#include "affpcl/problem/round.h"

namespace affpcl {

void direction(const Block& block, int k, In x, Out g) {
  const Problem& problem = block.problem();
  const Batch& batch = block.batch;
  const int samples = batch.samples(k);
  if (samples == 1)
    return problem.direction(block.lanes(), batch.s(k, 0), batch.b(k, 0), x, block.scratch(), g);
  const Scratch::Frame frame(block.scratch());
  const Out one = block.scratch().rows(g.rows);
  fill(g, 0);
  for (int m = 0; m < samples; ++m) {
    problem.direction(block.lanes(), batch.s(k, m), batch.b(k, m), x, block.scratch(), one);
    add_scaled(g, 1.0 / samples, one);
  }
}

}  // namespace affpcl
