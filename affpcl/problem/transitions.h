// What every temporal-difference problem shares (sec:td, eq:bellman): a sample is a transition,
//
//   A(s) = phi (phi - gamma phi')',    b^i(s) = phi r,    Phi(s) = phi c'
//
// with phi the features of where it began, phi' of where it led (0 at the end of an episode), r the
// agent's reward and c the reward features or channels, r = c' theta^i. The central objective is
// then learnt from rewards, c (c' theta - r), or as a running mean of rewards per cell (apx:lfa).
#pragma once

#include "affpcl/problem/problem.h"

namespace affpcl {

class Transitions : public Problem, public LinearObjective, public ObjectiveTable {
 public:
  void declare(Layout& world, Layout& sample) const override;
  void objective(Lanes lanes, In s, Out b) const override;
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override;
  void Phi(Lanes lanes, In s, In theta, Scratch& scratch, Out bhat) const override;
  void coe(Lanes lanes, In s, In b, In theta, In bhat, Out g) const override;
  int cells() const override { return 0; }  // 0: there is no table
  void cell(Lanes lanes, In s, Out index) const override;
  int width() const override { return 1; }
  void table_value(Lanes lanes, In s, In b, Out value) const override;
  void table_lift(Lanes lanes, In s, In value, Out bhat) const override;

 protected:
  // Rows of a sample: phi, gamma phi' (0 at an end), c, r, cell.
  In phi(In s) const { return {s.row(0), d_, s.width}; }
  In next(In s) const { return {s.row(d_), d_, s.width}; }
  In c(In s) const { return {s.row(2 * d_), k_, s.width}; }
  const double* r(In s) const { return s.row(2 * d_ + k_); }
  int cell_row() const { return 2 * d_ + k_ + 1; }
  int rows() const { return cell_row() + 1; }
  void set_shape(int d, int k) { d_ = d, k_ = k; }
  // The sample of an agent that has none.
  void write_void(Out s, int lane) const;
  bool is_void(In s, int lane) const { return s.row(cell_row())[lane] < 0; }

 private:
  int d_ = 0, k_ = 0;
};

}  // namespace affpcl
