// Exact known densities (sec:k-het-pcl): psi and eta come from the problem, which fuses the sum.
// Where agents act, their laws move with them (occupancy.h).
#pragma once

#include <memory>
#include <vector>

#include "affpcl/density/occupancy.h"
#include "affpcl/density/ratio.h"

namespace affpcl {

class ExactRatio final : public Ratio {
 public:
  struct Config {
    bool single = false;  // the sum over samples in single precision
  };
  static const Params<Config>& params();

  explicit ExactRatio(const Config& config) : config_(config) {}
  void declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) override;
  void contribute(const Block& block, In s, In g, bool first, Message message) const override;
  void end(const Block& block, In x, Message message) const override;
  void centre(const Round& round, Mean mean, Centre centre) const override;
  void correct(const Block& block, Mean mean, Out rg) const override;
  void own(const Block& block, In s, Out rho) const override;
  bool learns() const override { return acting_ != nullptr; }
  std::vector<std::string_view> uncompressed() const override {
    return acting_ ? acting_->uncompressed() : std::vector<std::string_view>{};
  }
  bool needs_densities() const override { return acting_ == nullptr; }

 private:
  // Against the mixture of the agents present, where it is known.
  const Densities& densities(const Round& round) const {
    const Densities* part =
        round.present != nullptr ? round.present->densities(round.problem) : nullptr;
    return part != nullptr ? *part : *round.problem.densities();
  }

  Config config_;
  Product M_;
  std::unique_ptr<OccupancyRatio> acting_;
};

}  // namespace affpcl
