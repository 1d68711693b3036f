#include "affpcl/fit/headline.h"

#include <fmt/format.h>

#include <cmath>

namespace affpcl {
std::string with_interval(const Estimate& e) {
  return std::isfinite(e.lo) ? fmt::format("{:.3g} [{:.3g}, {:.3g}]", e.mean, e.lo, e.hi)
                             : fmt::format("{:.3g}", e.mean);
}

std::string headline(const FitResult& r) {
  const std::size_t n = r.agents.size();
  if (!r.scored)
    return fmt::format("{} agents have a model each; not scored, so no gain is known",
                       r.model.agents.size());
  std::string text = fmt::format(
      "learning together took the {} on rows left out from {:.4g} to {:.4g} (gain {}); {} of {} "
      "agents gained, {} lost",
      r.model.encoding.classes.empty() ? "mean squared error" : "log loss", r.loss.alone,
      r.loss.given, with_interval(r.gain), r.gained, n, r.lost);
  std::size_t least = n;
  for (std::size_t i = 0; i < n; ++i) {
    const double gain = r.agents[i].gain.mean;
    if (!std::isnan(gain) && (least == n || gain < r.agents[least].gain.mean)) least = i;
  }
  if (n > 1 && least < n)
    text += fmt::format("; worst agent {}: gain {}", r.model.agents[least].name,
                        with_interval(r.agents[least].gain));
  return text;
}

}  // namespace affpcl
