#include "affpcl/output/fit_headline.h"

#include <fmt/format.h>

#include <cmath>

namespace affpcl {

const char* measure_name(const Encoding& encoding) {
  if (encoding.values) return "squared TD error";
  if (!encoding.classes.empty() || encoding.family == Family::kBinomial) return "log loss";
  return encoding.numeric() ? "mean squared error" : "deviance";
}

const char* scored_rows(SolverKind solver) {
  return solver == SolverKind::kStream ? "rows before they were learnt from" : "held-out rows";
}

std::string with_interval(const Estimate& e) {
  return std::isfinite(e.lo) ? fmt::format("{:.3g} [{:.3g}, {:.3g}]", e.mean, e.lo, e.hi)
                             : fmt::format("{:.3g}", e.mean);
}

std::string headline(const FitResult& r) {
  const std::size_t n = r.agents.size();
  if (!r.scored)
    return fmt::format("{} agents have a model each; not scored, so no gain is known",
                       r.model.agents.size());
  if (n == 1)
    return fmt::format("one agent, so its own model is all there is: {} {:.4g} on {}",
                       measure_name(r.model.encoding), r.loss.chosen, scored_rows(r.model.solver));
  const char* const comma = r.model.solver == SolverKind::kStream ? "," : "";
  std::string text = fmt::format(
      "learning together took the {0}{1} on {2}{1} from {3:.4g} to {4:.4g} (gain {5}); {6} of {7} "
      "agents gained, {8} lost",
      measure_name(r.model.encoding), comma, scored_rows(r.model.solver), r.loss.independent,
      r.loss.chosen, with_interval(r.gain), r.gained, n, r.lost);
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
