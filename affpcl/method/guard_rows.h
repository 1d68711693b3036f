// The guard's loops over the rows of a block, compiled once per instruction set: what guard.h and
// combination.h sum over an agent's d numbers in one pass each.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

// h <- c (h - s hbar), then the newest h is taken into hbar. Per lane: <g, h> and |h|^2 of the h
// that came, and |hbar|^2 after.
struct GuardSums {
  alignas(64) double gh[kLanes], hh[kLanes], square[kLanes];
};
void guard_rows(In g, Out h, Out hbar, const double* c, const double* s, const double* share,
                GuardSums& sums);

// Of one round, lane by lane.
struct CombinationSums {
  alignas(64) double ee[kLanes], eh[kLanes], hh[kLanes];  // differences of successive e and h
  alignas(64) double uphill[kLanes];                      // <delta, g(y)>, both before the round
  alignas(64) double square[kLanes], carried[kLanes];     // |delta|^2, and had there been no h
  alignas(64) double cross[kLanes];  // <delta before the round, delta had there been no h>
};
// own and correction times `scale` are g(y) and h, the correction times `moved` is how it moved x.
// g and h of the round before are replaced.
struct CombinationRows {
  In x, y, before;  // before: delta as the round found it
  In own, correction;
  Out g, h;
};
void combination_rows(const CombinationRows& rows, const double* scale, const double* moved,
                      CombinationSums& sums);

// mean += share (x - y - mean), and |mean|^2; y without rows is 0.
void mean_rows(In x, In y, const double* share, Out mean, double* square);

// z = y + w (x - y); y where w is 0, whatever x is.
void combine_rows(In x, In y, const double* w, Out z);

}  // namespace affpcl
