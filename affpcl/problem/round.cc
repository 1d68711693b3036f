#include "affpcl/problem/round.h"

namespace affpcl {

void residual(const Round& round, Lanes lanes, const Batch& batch, int k, In x, Out g) {
  const int samples = batch.samples(k);
  if (samples == 1) {
    round.problem.apply(lanes, batch.s(k, 0), x, g);
    subtract(g, batch.b(k, 0), g);
    return;
  }
  const Out one = round.scratch.rows(g.rows);
  fill(g, 0);
  for (int m = 0; m < samples; ++m) {
    round.problem.apply(lanes, batch.s(k, m), x, one);
    subtract(one, batch.b(k, m), one);
    add_scaled(g, 1.0 / samples, one);
  }
}

}  // namespace affpcl
