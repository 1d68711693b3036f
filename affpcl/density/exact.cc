#include "affpcl/density/exact.h"

#include "affpcl/base/error.h"

namespace affpcl {

void ExactRatio::declare(const Problem& problem, Layout&, Layout&, SumLayout& sum) {
  if (problem.densities() == nullptr)
    throw BadInput(
        "ratio = \"exact\" needs a problem whose densities are known; this one's are not");
  M_ = sum.add_product("M", problem.densities()->p(), problem.shape().d);
}

void ExactRatio::contribute(const Round& round, In s, In g, Agents agents, Centre,
                            Message message) const {
  round.problem.densities()->accumulate(agents.lanes, s, g, round.scratch, message.at(M_));
}

void ExactRatio::correct(const Round& round, Agents agents, Centre, Mean mean, Out rg) const {
  round.problem.densities()->correct(agents.lanes, mean[M_], rg);
}

void ExactRatio::own(const Round& round, In s, Agents agents, Centre, Out rho) const {
  round.problem.densities()->own(agents.lanes, s, round.scratch, rho);
}

}  // namespace affpcl
