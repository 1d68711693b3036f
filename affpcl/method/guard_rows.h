// The guard's loops over the rows of a block, compiled once per instruction set: what guard.h and
// combination.h sum over an agent's d numbers in one pass each.
#pragma once

#include "affpcl/math/blocks.h"

namespace affpcl {

// What an agent of guard.h keeps beside hbar. kSquare: |hbar|^2; kSteps: that the agent has taken;
// kChance: the sum of the squared weights of the means, which is what the variance of a mean is of
// the variance of one.
struct GuardRow {
  enum { kGH, kHH, kSquare, kWeight, kDebias, kSteps, kChance, kRows };
};

// h <- c (h - s hbar) with c and s as `means` say and B^2 = `pool`, then g and h are taken in.
void guard_rows(In g, Out h, Out hbar, double pool, const double* share, Out means);

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

// What an agent of combination.h keeps of its evidence.
struct CombinationRow {
  enum {
    kCount,
    kEE,  // means of |e|^2, <e, h> and |h|^2, and of products of the last two
    kEH,
    kHH,
    kEH2,
    kEHHH,
    kHH2,
    kUphill,  // means of <delta, g(y)> and of its square
    kUphill2,
    kOwnNoise,  // N_y, which bounds |z - y|^2
    kNoise,     // N, and its mean
    kNoiseMean,
    kSquare,  // |delta|^2, and its mean
    kSquareMean,
    kLost,
    kShare,
    kRows
  };
};
struct AverageRow {  // of the mean of delta
  enum { kCross, kNoise, kRows };
};

// Of round t, lane by lane: the share of the newest in the mean of the first t - 1 and of the first
// t rounds, and the sums of the squared shares.
struct CombinationShares {
  alignas(64) double older[kLanes], newest[kLanes], older_chance[kLanes], chance[kLanes];
};
// How much of a bias counts: rows of the agent that are drawn again, 0 for none, with |hbar|^2.
struct CombinationAgain {
  alignas(64) double rows[kLanes] = {}, square[kLanes] = {};
};
// Takes one round into an agent's evidence, and w from it. `average`: the two numbers of the mean
// of delta where it is what counts, otherwise no rows; average2: the square of that mean.
void weigh_rows(const CombinationSums& sums, In alpha, const CombinationShares& shares,
                const CombinationAgain& again, int d, Out numbers, Out average,
                const double* average2);

// mean += share (x - y - mean), and |mean|^2; y without rows is 0.
void mean_rows(In x, In y, const double* share, Out mean, double* square);

// z = y + w (x - y); y where w is 0, whatever x is.
void combine_rows(In x, In y, const double* w, Out z);

}  // namespace affpcl
