#include "affpcl/table/solver.h"

namespace affpcl {

bool FitRun::stopped() const { return team.processes().any(stop != nullptr && *stop); }

void FitRun::report(double share) const {
  if (progress) progress(share);
}

Frame Solver::read(const FrameOptions& options, Team& team) {
  return build_frame(options, team, row_order());
}

}  // namespace affpcl
