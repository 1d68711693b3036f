#include "affpcl/density/none.h"

namespace affpcl {

void NoRatio::declare(const Problem& problem, Layout&, Layout&, SumLayout& sum) {
  mean_ = sum.add("gbar", problem.shape().d);
}
void NoRatio::contribute(const Round&, In, In g, bool, Agents, Centre, Message message) const {
  message.add(mean_, g);
}
void NoRatio::correct(const Round&, Agents, Centre, Mean mean, Out rg) const {
  copy(mean[mean_], rg);
}
void NoRatio::own(const Round&, In, Agents, Centre, Out rho) const { fill(rho, 1); }

}  // namespace affpcl
