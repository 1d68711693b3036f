// The exact solver with differential privacy of the rows: it makes one release of noised moments, lets
// go of the rows, and learns from the release alone.
#pragma once

#include <optional>
#include <string>

#include "affpcl/mixed/options.h"
#include "affpcl/mixed/private_moments.h"
#include "affpcl/table/folds.h"
#include "affpcl/table/privacy.h"

namespace affpcl {

// BadInput where the options ask for what one release of moments cannot give.
void refuse_beside_privacy(const FrameOptions& options);

class PrivateSolver final : public FoldedSolver {
 public:
  // The release is kept in `file` for this job; empty: not kept.
  PrivateSolver(const MixedOptions& options, PrivacyTerms terms, std::string file, std::string job)
      : options_(options), terms_(std::move(terms)), file_(std::move(file)), job_(std::move(job)) {}

  Frame read(const FrameOptions& options, Team& team) override;
  std::unique_ptr<FoldFit> learn(const Frame& frame, int without, Team& team) override;

 private:
  MixedOptions options_;
  PrivacyTerms terms_;
  std::string file_, job_;
  std::optional<PrivateMoments> moments_;
};

}  // namespace affpcl
