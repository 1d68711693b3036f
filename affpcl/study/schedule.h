// Which agents take part in which round, from a CSV file with the columns round and agent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/problem/problem.h"

namespace affpcl {

// By round, in ascending order. Rounds count from 1; agents count from 0, or go by name where the
// problem names them. BadInput where a round or an agent cannot be.
std::vector<std::vector<std::int64_t>> read_schedule(const std::string& path,
                                                     const Problem& problem);

}  // namespace affpcl
