#include "affpcl/math/schedule.h"

#include <cmath>

namespace affpcl {

double Schedule::at(std::int64_t t) const {
  switch (kind) {
    case Kind::kConstant:
      return value;
    case Kind::kLogConstant:
      return std::log(static_cast<double>(horizon)) / static_cast<double>(horizon);
    case Kind::kDiminishing:
      return 4 / (static_cast<double>(t) + t0 + 1);
  }
  return value;
}

In StepSizes::agents(std::int64_t t, Lanes lanes, Scratch& scratch) const {
  const Out row = scratch.rows(1);
  if (common()) {
    row.p[0] = agent.at(t);
    return {row.p, 1, 1};
  }
  const double alpha = agent.schedule.at(t);
  for (int l = 0; l < lanes.count; ++l)
    row.p[l] = alpha * agent_factors[static_cast<std::size_t>(lanes.first + l)];
  for (int l = lanes.count; l < kLanes; ++l) row.p[l] = 0;
  return row;
}

}  // namespace affpcl
