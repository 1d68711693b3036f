// What learnt ratios share. All work in the minus-one form of apx:dre, rho^i - 1 = psi' eta^i, from
// running sums:
//
//     eta^i = G^+ V^i,         V^i = sum_t (psi(s^i_t) - mean_j psi(s^j_t)),
//                              G = sum_t mean_j psi psi'
//     rg^i  = gbar + N V^i,    N = M' G^+  (d x p, formed once a round at the centre)
//
// so that an agent needs its own p numbers and one product. Where agents are absent from rounds
// psi(s^i) counts T / T^i times, T^i of the T rounds being those that agent i took part in. Where
// nothing has been seen (no sample yet, a state no agent met, a direction of psi without data) eta
// is 0 and rho is 1; with one agent V is 0 and AffPCL is independent learning to the bit.
#pragma once

#include "affpcl/density/ratio.h"

namespace affpcl {

class LearntRatio : public Ratio {
 public:
  // Past: from the samples before this round, so rho and this round's samples are independent.
  // Current: with this round's samples; then E[h] = 0 while x^c and theta^c do not move, for the
  // samples are exchangeable.
  enum class Counting { kPast, kCurrent };
  struct Config {
    Counting counting = Counting::kPast;
    // Positive-part James-Stein: eta^i times max(0, 1 - (rank - 3)(1 - 1/n) / X^2) with Pearson's
    // X^2 = V' G^+ V. Agents whose environment cannot be told from the mixture have rho = 1. With m
    // of n agents present 1 - 1/n is T / T^i - 1/m.
    bool shrink = true;
  };
  static const Params<Config>& params();

  explicit LearntRatio(const Config& config) : config_(config) {}
  bool learns() const override { return true; }
  bool against_all() const override { return true; }
  void correct(const Block& block, Mean mean, Out rg) const override;

  // eta^i as the last round had it.
  virtual void eta(Agents agents, Centre centre, Scratch& scratch, Out eta) const;

 protected:
  // Dense: N is kept, for correct as it is here.
  void declare_learnt(const Problem& problem, int p, Layout& agent, Layout& centre,
                      bool dense = true);
  // The beginning of contribute, with the round's first sample, and of centre.
  void begin_round(Agents agents) const;
  void begin_round(const Round& round, Centre centre) const;
  // Where this round's psi(s^i) is added to. With the round's first sample what waited there comes
  // into use.
  Out tally(Agents agents, bool first) const;
  bool past() const { return config_.counting == Counting::kPast; }
  int p() const { return own_.rows; }
  int d() const { return gbar_.rows; }
  // Adds this round's numbers to a running sum at the centre, one round late where the past counts.
  // `sum` holds the running sum and then as many numbers that wait.
  void accumulate(Centre centre, Field sum, const double* now) const;
  // T / T^i of each lane, 0 where an agent has no samples in use; true if all took part in all.
  bool all_rounds(Agents agents, Centre centre, double* often) const;
  int waiting(int rows) const { return past() ? 2 * rows : rows; }  // rows of such a sum
  // G^+ V, called with the sums that are in use.
  virtual void solve(Centre centre, In V, Out eta) const = 0;
  // V' G^+ V, one row.
  virtual void square(Centre centre, In V, Scratch& scratch, Out X2) const;

  // V and, where shrinking, what eta is multiplied with (one row).
  void differences(Agents agents, Centre centre, Scratch& scratch, Out V, Out weight) const;

  Field gbar_, N_;     // centre, for this round: the plain mean of g, and N
  Field psi0_;         // centre: summed mean_j psi(s^j)
  Field own_, fresh_;  // agent: summed psi(s^i) in use; of this round, where it is not in use yet
  Field own_rounds_;   // agent: rounds that it took part in, this one too
  Field rounds_;       // centre: rounds, and 1/m in this one
  Field rank_;         // centre: of G, in effect: tr(G^+ G)

 private:
  Config config_;
};

template <>
struct EnumNames<LearntRatio::Counting> {
  static constexpr std::string_view all[] = {"past", "current"};
};

}  // namespace affpcl
