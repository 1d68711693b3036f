#include "affpcl/density/none.h"

namespace affpcl {

void NoRatio::declare(const Problem& problem, Layout&, Layout&, SumLayout& sum) {
  mean_ = sum.add("gbar", problem.shape().d);
}
void NoRatio::contribute(const Block&, In, In g, bool, Message message) const {
  message.add(mean_, g);
}
void NoRatio::correct(const Block&, Mean mean, Out rg) const { copy(mean[mean_], rg); }
void NoRatio::own(const Block&, In, Out rho) const { fill(rho, 1); }

}  // namespace affpcl
