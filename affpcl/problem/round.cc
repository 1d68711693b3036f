#include "affpcl/problem/round.h"

namespace affpcl {

void direction(const Block& block, int k, In x, Out g) {
  direction(block, k, {0, block.batch.samples(k)}, x, g);
}

void direction(const Block& block, int k, SampleRange samples, In x, Out g) {
  const Problem& problem = block.problem();
  const Batch& batch = block.batch;
  const auto one_sample = [&](int m, Out to) {
    problem.direction(block.lanes(), batch.s(k, m), batch.b(k, m), x, block.scratch(), to);
  };
  const int count = samples.last - samples.first;
  if (count == 1) return one_sample(samples.first, g);
  const Scratch::Frame frame(block.scratch());
  const Out one = block.scratch().rows(g.rows);
  fill(g, 0);
  for (int m = samples.first; m < samples.last; ++m) {
    one_sample(m, one);
    add_scaled(g, 1.0 / count, one);
  }
}

}  // namespace affpcl
