#include "affpcl/problem/some_agents.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

void SomeAgents::sum_sites(std::span<double> numbers) const {
  std::vector<Fixed> sums;
  for (const double x : numbers) {
    if (!(std::abs(x) < kLargestFixed))
      throw BadInput(
          "a sum over rows is not finite, or beyond 4.5e15, where numbers in fixed point end; "
          "use smaller units");
    sums.push_back(to_fixed(x));
  }
  sum_sites(sums);
  for (std::size_t k = 0; k < sums.size(); ++k) numbers[k] = to_double(sums[k]);
}

LaneSet SomeAgents::of(Lanes lanes) const {
  LaneSet set = 0;
  for (int l = 0; l < lanes.count; ++l)
    if (has(lanes.first + l)) set |= LaneSet{1} << l;
  return set;
}

const SomeAgents* some_agents(const Problem& problem) {
  const auto* some = dynamic_cast<const SomeAgents*>(&problem);
  return some != nullptr && some->own().count() < problem.shape().agents ? some : nullptr;
}

void need_all_agents(const Problem& problem, std::string_view who) {
  if (some_agents(problem) != nullptr)
    throw BadInput(fmt::format(
        "{} the data of all agents at one place, which a federation does not have", who));
}

}  // namespace affpcl
