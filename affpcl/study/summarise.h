// Summarises the replicates of a setting: means, intervals, ratios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/study/study.h"
#include "affpcl/study/task.h"

namespace affpcl {

// Means over the replicates in which no method diverged. Whole replicates count; where none was
// finished, all those begun do, up to the step that all have reached. Replicates that were not run
// have no records; where none was begun there are no methods in the result.
SettingResult summarise(const Setting& setting, const SettingShape& shape,
                        const std::vector<Replicate>& replicates);

}  // namespace affpcl
