// What the replicates of a setting come to: means, intervals, ratios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/study/study.h"
#include "affpcl/study/task.h"

namespace affpcl {

// What the summary needs to know of a setting's problem.
struct Described {
  std::vector<std::int64_t> curve_agents;
  std::vector<std::string> errors, agents, unknowns;
};

// Means over the replicates in which no method diverged. Whole replicates count; where none was
// finished, all those begun do, up to the step that all have reached. Replicates that were not run
// have no records; where none was begun there are no methods in the result.
SettingResult summarise(const Setting& setting, const Described& described,
                        const std::vector<Replicate>& replicates);

}  // namespace affpcl
