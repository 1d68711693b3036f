// The central objective bhat^c(s): the mean of all agents' b^j(s), in one of four forms.
//
//   learnt    bhat^c(s) = Phi(s) theta^c, theta^c by gradient steps (COE, eq:obj-alg): the paper
//   moments   bhat^c(s) = Phi(s) theta^c, theta^c solved from summed moments. COE's direction is
//             M(s) theta - v(s); theta^c solves (sum M) theta = sum v, summed over the rounds'
//             means so far, by a generalised inverse until sum M has full rank. Outcome channels:
//             M = cc', v = c r. There is no step size.
//   known     b^0(s), the mean of all b^j(s), where it is stated: nothing is learnt
//   tabular   a running mean of b per state (apx:lfa)
#pragma once

#include <string_view>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/method/method.h"

namespace affpcl {

class CentralObjective {
 public:
  enum class Form { kAuto, kLearnt, kMoments, kKnown, kTabular };
  explicit CentralObjective(Form form) : form_(form) {}

  void declare(const Setup& setup, Layout& centre, SumLayout& sum);  // resolves kAuto
  void start(const Problem& problem, Centre centre) const;

  std::vector<std::string_view> uncompressed() const { return {"cells", "moments"}; }
  bool steps() const { return form_ == Form::kLearnt; }  // theta^c moves by gradient steps
  Field theta() const { return theta_; }                 // theta^c; no rows where there is none

  // g^{c->i} = G(s, x) - bhat^c(s), G(s, x) - b, and COE's direction where steps().
  void evaluate(const Block& block, const AtCentre& at, const CentralDirections& to) const;
  // What a sample adds to the round's sum beside gradient steps.
  void contribute(const Block& block, In s, In b, Message message) const;
  void centre(Mean mean, Centre centre) const;

 private:
  void resolve(const Problem& problem);
  void from_table(const Block& block, In s, Out bhat) const;
  void add_cell(const Block& block, In s, In b, Message message) const;
  void add_moments(const Block& block, In s, In b, Message message) const;

  Form form_;
  Field theta_;      // centre: theta^c
  Field seen_;       // centre: what was summed so far, tabular or moments
  Product cells_;    // sum, tabular: one-hot(cell) (value, 1)'
  Product moments_;  // sum, moments: (M, v), k x (k + 1)
  int width_ = 0;    // tabular: numbers of a cell
};

template <>
struct EnumNames<CentralObjective::Form> {
  static constexpr std::string_view all[] = {"auto", "learnt", "moments", "known", "tabular"};
};

}  // namespace affpcl
