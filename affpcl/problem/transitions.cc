#include "affpcl/problem/transitions.h"

namespace affpcl {

void Transitions::declare(Layout&, Layout& sample) const {
  sample.add("phi", d_);
  sample.add("next", d_);
  sample.add("c", k_);
  sample.add("r", 1);
  sample.add("cell", 1);
}

void Transitions::write_void(Out s, int lane) const {
  for (int r = 0; r < cell_row(); ++r) s.row(r)[lane] = 0;
  s.row(cell_row())[lane] = -1;
}

void Transitions::direction(Lanes, In s, In b, In x, Scratch&, Out g) const {
  double here[kLanes], there[kLanes];
  dot(phi(s), x, g.lanes, here);
  dot(next(s), x, g.lanes, there);
  for (int l = 0; l < g.lanes; ++l) here[l] -= there[l];
  scale(phi(s), here, g);
  subtract_objective(b, g);
}

void Transitions::objective(Lanes, In s, Out b) const { scale(phi(s), r(s), b); }

void Transitions::Phi(Lanes, In s, In theta, Scratch&, Out bhat) const {
  outer(phi(s), c(s), theta, bhat);
}

void Transitions::coe(Lanes, In s, In, In theta, In, Out g) const {
  double gap[kLanes];
  dot(c(s), theta, g.lanes, gap);
  for (int l = 0; l < g.lanes; ++l) gap[l] -= r(s)[l];
  scale(c(s), gap, g);
}

void Transitions::cell(Lanes, In s, Out index) const { copy({s.row(cell_row()), 1}, index); }
void Transitions::table_value(Lanes, In s, In, Out value) const { copy({r(s), 1}, value); }
void Transitions::table_lift(Lanes, In s, In value, Out bhat) const {
  scale(phi(s), value.p, bhat);
}

}  // namespace affpcl
