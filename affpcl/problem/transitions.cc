#include "affpcl/problem/transitions.h"

namespace affpcl {
namespace {

// out = v factor, lane by lane.
void scale(In v, const double* factor, Out out) {
  for (int i = 0; i < v.rows; ++i)
    for (int l = 0; l < kLanes; ++l) out.row(i)[l] = v.row(i)[l] * factor[l];
}

// sum = a' x, lane by lane.
void dot(In a, In x, double* sum) {
  for (int l = 0; l < kLanes; ++l) sum[l] = 0;
  for (int i = 0; i < a.rows; ++i) {
    if (x.width == 1) {
      const double xi = x.p[i];
      for (int l = 0; l < kLanes; ++l) sum[l] += a.row(i)[l] * xi;
    } else {
      for (int l = 0; l < kLanes; ++l) sum[l] += a.row(i)[l] * x.row(i)[l];
    }
  }
}

}  // namespace

void Transitions::declare(Layout&, Layout& sample) const {
  sample.add("phi", d_);
  sample.add("next", d_);
  sample.add("c", k_);
  sample.add("r", 1);
  sample.add("cell", 1);
}

void Transitions::apply(Lanes, In s, In x, Out Ax) const {
  double here[kLanes], there[kLanes];
  dot(phi(s), x, here);
  dot(next(s), x, there);
  for (int l = 0; l < kLanes; ++l) here[l] -= there[l];
  scale(phi(s), here, Ax);
}

void Transitions::objective(Lanes, In s, Out b) const { scale(phi(s), r(s), b); }

void Transitions::Phi(Lanes, In s, In theta, Out bhat) const {
  double reward[kLanes];
  dot(c(s), theta, reward);
  scale(phi(s), reward, bhat);
}

void Transitions::coe(Lanes, In s, In, In theta, In, Out g) const {
  double gap[kLanes];
  dot(c(s), theta, gap);
  for (int l = 0; l < kLanes; ++l) gap[l] -= r(s)[l];
  scale(c(s), gap, g);
}

void Transitions::cell(Lanes, In s, Out index) const { copy({s.row(cell_row()), 1}, index); }
void Transitions::table_value(Lanes, In s, In, Out value) const { copy({r(s), 1}, value); }
void Transitions::table_lift(Lanes, In s, In value, Out bhat) const {
  scale(phi(s), value.p, bhat);
}

}  // namespace affpcl
