#include "affpcl/density/exact.h"

#include "affpcl/base/error.h"

namespace affpcl {

const Params<ExactRatio::Config>& ExactRatio::params() {
  static const Params<Config> kParams = {
      {"precision",
       &Config::single,
       {"f64", "f32"},
       "exact ratios of normal environments: f64, or f32 inside the sum over all pairs of agents "
       "(faster from about 1000 agents on; errors of about 1e-6)"},
  };
  return kParams;
}

void ExactRatio::declare(const Problem& problem, Layout& agent, Layout& centre, SumLayout& sum) {
  if (config_.single && (problem.densities() == nullptr || !problem.densities()->has_single()))
    throw BadInput(
        "precision = \"f32\" needs a problem whose environments are normal; use \"f64\"");
  if (problem.facets().occupancy != nullptr) {
    acting_ = std::make_unique<OccupancyRatio>();
    return acting_->declare(problem, agent, centre, sum);
  }
  if (problem.densities() == nullptr)
    throw BadInput(
        "ratio = \"exact\" needs a problem whose densities are known; this one's are not: use "
        "\"counts\" or \"linear\"");
  M_ = sum.add_product("M", problem.densities()->p(), problem.shape().d);
}

void ExactRatio::contribute(const Block& block, In s, In g, bool first, Message message) const {
  if (acting_) return acting_->contribute(block, s, g, first, message);
  const Densities& of = densities(block.round);
  const LaneSet all = all_lanes(block.lanes().count);
  message.each(M_, [&](LaneSet which, double* M) {
    if (which != all)
      of.accumulate_some(which, block.lanes(), s, g, config_.single, block.scratch(), M);
    else if (config_.single)
      of.accumulate_single(block.lanes(), s, g, block.scratch(), M);
    else
      of.accumulate(block.lanes(), s, g, block.scratch(), M);
  });
}

void ExactRatio::end(const Block& block, In x, Message message) const {
  if (acting_) acting_->end(block, x, message);
}

void ExactRatio::centre(const Round& round, Mean mean, Centre centre) const {
  if (acting_) acting_->centre(round, mean, centre);
}

void ExactRatio::correct(const Block& block, Mean mean, Out rg) const {
  if (acting_) return acting_->correct(block, mean, rg);
  densities(block.round).correct(block.lanes(), mean[M_], rg);
}

void ExactRatio::own(const Block& block, In s, Out rho) const {
  if (acting_) return acting_->own(block, s, rho);
  densities(block.round).own(block.lanes(), s, block.scratch(), rho);
}

}  // namespace affpcl
