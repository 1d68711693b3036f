// The d x d work of evidence.h for several agents at once, an agent a lane, compiled once per
// instruction set. What a lane computes does not depend on the other lanes. Names are those of
// docs/explain/fit.md.
#pragma once

#include <cstddef>

#include "affpcl/math/blocks.h"

namespace affpcl::mixed {

inline constexpr std::size_t kBatch = 8;            // agents
inline constexpr std::size_t kBatchedColumns = 32;  // d, up to which a batch stays in cache

// A worker's memory.
class BatchSpace {
 public:
  BatchSpace() = default;
  explicit BatchSpace(std::size_t d) : memory_(5 * d * d * kBatch + 3 * d * kBatch) {}
  double *data() { return memory_.data(); }

 private:
  Buffer memory_;
};

// Of `count` agents: W = X'V^-1 X [count][d][d], v = X'V^-1 y [count][d], and by agent y'V^-1 y,
// log |V| and tr(A P) / s^2, where D = root' root. A, b, yy, rows, wide are Moments' of the first agent.
struct FirstPass {
  std::size_t d, count;
  const double *A, *b, *yy, *rows, *wide, *root;
  bool diagonal;
  double s2;
  double *space, *W, *v;
  double (*rest)[3];
};
void first_pass(const FirstPass &batch);

// From W [count][d][d] and the covariance of the centre, H^-1: W H^-1 W, of a diagonal D its diagonal
// only, and tr(H^-1 W).
struct SecondPass {
  std::size_t d, count;
  const double *W, *centre_cov;
  bool diagonal;
  double *space, *WHW, *traces;
};
void second_pass(const SecondPass &batch);

}  // namespace affpcl::mixed
