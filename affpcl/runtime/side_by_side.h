// Pieces of work whose sums share messages: where every message travels far, as between sites, it
// matters how many there are, and not how long they are.
#pragma once

#include <cstddef>

#include "affpcl/base/function_ref.h"
#include "affpcl/runtime/team.h"

namespace affpcl {

// work(k, team) for k from 0 to count - 1, which may add over the team, and use nothing that the
// others change. One after another on `team`; but at sites that are apart at the same time, each on a
// team of its own, and their sums travel in one message. What any of them throws is thrown.
void side_by_side(std::size_t count, Team& team, FunctionRef<void(std::size_t, Team&)> work);

}  // namespace affpcl
