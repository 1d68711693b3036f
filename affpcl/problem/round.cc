#include "affpcl/problem/round.h"

namespace affpcl {

void residual(const Round& round, Lanes lanes, const Batch& batch, int k, In x, Out g) {
  const int samples = batch.samples(k);
  if (samples == 1) return round.problem.residual(lanes, batch.s(k, 0), batch.b(k, 0), x, g);
  const Out one = round.scratch.rows(g.rows);
  fill(g, 0);
  for (int m = 0; m < samples; ++m) {
    round.problem.residual(lanes, batch.s(k, m), batch.b(k, m), x, one);
    add_scaled(g, 1.0 / samples, one);
  }
}

}  // namespace affpcl
