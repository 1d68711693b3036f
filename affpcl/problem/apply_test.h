// A problem's functions with memory of their own, for tests.
#pragma once

#include "affpcl/problem/problem.h"

namespace affpcl {

inline void apply(const Problem& problem, Lanes lanes, In s, In x, Out Gx) {  // G(s, x)
  Scratch scratch;
  problem.direction(lanes, s, {}, x, scratch, Gx);
}

inline void apply_Phi(const Problem& problem, Lanes lanes, In s, In theta, Out bhat) {
  Scratch scratch;
  problem.linear()->Phi(lanes, s, theta, scratch, bhat);
}

inline void known_objective(const Problem& problem, Lanes lanes, In s, Out b0) {
  Scratch scratch;
  problem.facets().known->known(lanes, s, scratch, b0);
}

inline void error(const Problem& problem, Lanes lanes, In x, Out one_row) {
  Scratch scratch;
  problem.error(lanes, x, scratch, one_row);
}

}  // namespace affpcl
