#include "affpcl/table/solver.h"

#include "affpcl/base/error.h"

namespace affpcl {

bool FitRun::stopped() const {
  const bool mine = stop != nullptr && *stop;
  if (!team.processes().apart()) return team.processes().any(mine);
  if (mine) throw Interrupted();  // the other sites need this one
  return false;
}

void FitRun::report(double share) const {
  if (progress) progress(share);
}

Frame Solver::read(const FrameOptions& options, Team& team) {
  return build_frame(options, team, row_order());
}

}  // namespace affpcl
