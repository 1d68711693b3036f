#include "affpcl/density/ratio.h"

#include <fmt/format.h>

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/density/counts.h"
#include "affpcl/density/coupled.h"
#include "affpcl/density/exact.h"
#include "affpcl/density/fixed_point.h"
#include "affpcl/density/linear.h"
#include "affpcl/density/none.h"
#include "affpcl/density/occupancy.h"
#include "affpcl/density/sparse.h"

namespace affpcl {

namespace {

template <class R>  // with R::Config, R::params() and a constructor R(Config)
RatioKind ratio_kind_of(std::string_view name, std::string_view doc) {
  return {name, doc, R::params().table(), [](const Values& v) {
            return std::unique_ptr<Ratio>(std::make_unique<R>(R::params().read(v)));
          }};
}

}  // namespace

const std::vector<RatioKind>& ratio_kinds() {
  static const std::vector<RatioKind> kKinds = {
      ratio_kind_of<ExactRatio>("exact", "known densities, as Algorithm 1 assumes"),
      {"none",
       "no importance correction (rho = 1); biased when environments differ",
       {},
       [](const Values&) { return std::unique_ptr<Ratio>(new NoRatio); }},
      ratio_kind_of<CountRatio>("counts", "learnt: counts per state, for finite problems"),
      ratio_kind_of<LinearRatio>("linear", "learnt: rho - 1 = psi' eta by least squares from sums"),
      ratio_kind_of<FixedPointRatio>("fixed-point",
                                     "learnt: psi' eta by the paper's stochastic iteration"),
      ratio_kind_of<SparseRatio>(
          "sparse",
          "learnt: psi' eta with few entries, for environments that differ in few features"),
      ratio_kind_of<OccupancyRatio>(
          "policy",
          "learnt: state visits times the current policy, for agents that act; the paper's for "
          "SARSA, with shrink = \"none\""),
      ratio_kind_of<CoupledRatio>(
          "coupled", "learnt: from coupled pairs of samples, an oracle of finite problems"),
  };
  return kKinds;
}

const std::vector<Param>& ratio_params() {
  static const std::vector<Param> kParams = [] {
    std::vector<Param> params = {{.name = "ratio",
                                  .doc = "density ratios of the importance correction",
                                  .fallback = "exact"}};
    for (const RatioKind& kind : ratio_kinds()) {
      params.front().choices.push_back(kind.name);
      for (const Param& p : kind.params)
        if (std::none_of(params.begin(), params.end(),
                         [&](const Param& q) { return q.name == p.name; }))
          params.push_back(p);
    }
    return params;
  }();
  return kParams;
}

std::unique_ptr<Ratio> make_ratio(const Values& values) {
  const std::string& name = values.text("ratio");
  const auto kind = std::find_if(ratio_kinds().begin(), ratio_kinds().end(),
                                 [&](const RatioKind& k) { return k.name == name; });
  for (const Param& p : ratio_params()) {
    if (p.name == "ratio" || values.all().find(p.name)->second == p.fallback) continue;
    if (std::none_of(kind->params.begin(), kind->params.end(),
                     [&](const Param& q) { return q.name == p.name; }))
      throw BadInput(fmt::format("{} = {} means nothing with ratio = \"{}\"", p.name,
                                 to_text(values.all().find(p.name)->second), name));
  }
  return kind->make(values);
}

}  // namespace affpcl
