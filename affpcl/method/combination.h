// The safe combination of a guarded agent. Beside the collaborative iterate x the agent keeps the
// iterate y of independent learning, from the same samples, and returns
//
//     z = y + w delta,    delta = x - y
//
// delta is the correction h passed through the agent's own dynamics: without h it would shrink as
// the error of y does. So its square is an energy with known sources,
//
//     |delta'|^2 = rho |delta|^2 - 2 alpha <.., h> + alpha^2 |h|^2,    rho measured at every round,
//
// of which the middle term has mean 0 unless h is biased. N is what noise alone would have brought;
// 1 - N / |delta|^2 is the share of bias. With c = -<e, h> / <h, h>, from differences of successive
// rounds and so free of means,
//
//     w = c (1 - v / c^2) min(1, k N / |delta|^2),    k = 2 - 4 / (degrees of freedom), in
//     [1, 1.5].
//
// v is the squared standard error of c: noise that says nothing about c is not weighed. The last
// factor is James and Stein's estimator of the bias of x, shrunk to 0. Nothing travels. While y is
// still far away a bias matters by its direction: <delta, g(y)> says without bias whether delta
// leads uphill, and w falls to 0 where its mean is positive beyond chance.
//
// Averaged iterates hide less noise, and an average is not the last iterate: there the mean of
// delta is tested against the energy that noise brings to that mean. Rows that are drawn again and
// again make the mean of h differ from 0 by chance; as much is not counted as bias.
// docs/explain/guard.md has the theorem, docs/decisions/010 what it was compared with.
#pragma once

#include <vector>

#include "affpcl/method/method.h"

namespace affpcl {

class Combination {
 public:
  explicit Combination(bool on) : on_(on) {}
  bool on() const { return on_; }

  void declare(const Setup& setup, Layout& agent);
  void start(const Problem& problem, Agents agents) const;

  // One block's way through a round.
  class Walk {
   public:
    Walk(const Combination& combination, const Block& block, In x);
    void step(int k, In h);  // a local step of y; x has stepped with this h too
    void end(In x);          // z from x and y

   private:
    friend class Combination;
    const Combination& c_;
    const Block& block_;
    Out g_, before_, alpha_;  // before_: delta as the round found it; alpha_: the sum of alpha
    In h_;                    // of a round of one step
    Out own_, correction_;    // of more steps: sums of -alpha g(y) and -alpha h
  };

  In solution(Agents agents) const { return agents[z_]; }
  Out share(Agents agents) const;  // w, one row

 private:
  struct Sums;  // of one round, lane by lane
  void take_in(const Walk& walk, In x, Sums& sums) const;

  bool on_;
  bool averaged_ = false;           // the average of z is what counts
  const Recorded* rows_ = nullptr;  // recorded samples
  Field y_, z_;                     // agent
  Field e_, h_;                     // agent: g(y) and h of the round before
  Field hbar_;                      // agent: mean of h, where rows are drawn again
  Field average_;                   // agent: mean of delta, where averages are scored
  Field numbers_, of_average_;      // agent: CombinationRow, AverageRow
};

}  // namespace affpcl
