#include "affpcl/output/fit_headline.h"

#include <fmt/format.h>

#include <cmath>

#include "affpcl/base/join.h"

namespace affpcl {

const char* measure_name(const Encoding& encoding) {
  if (encoding.values) return "squared TD error";
  if (!encoding.classes.empty() || encoding.family == Family::kBinomial) return "log loss";
  return encoding.numeric() ? "mean squared error" : "deviance";
}

const char* scored_rows(SolverKind solver) {
  return solver == SolverKind::kStream ? "rows before they were learnt from" : "held-out rows";
}

namespace {

std::size_t test_rows(const FitResult& r) {
  std::size_t rows = 0;
  for (const AgentScore& a : r.agents) rows += a.scored_rows;
  return rows;
}

}  // namespace

std::string scored_rows(const FitResult& r) {
  std::string rows = scored_rows(r.model.solver);
  const HeldOut& h = r.held_out;
  if (!h.files.empty()) return fmt::format("{} ({} test rows)", rows, test_rows(r));
  if (h.how == Holdout::kNamed)
    return fmt::format("{} ({} folds by '{}')", rows, h.folds, h.column);
  if (h.how == Holdout::kForward)
    return fmt::format("{} ({} later blocks by '{}')", rows, h.folds - 1, h.column);
  return rows;
}

std::string how_held_out(const FitResult& r) {
  const HeldOut& h = r.held_out;
  if (r.model.solver == SolverKind::kStream) return "every row predicted before it is learnt from";
  if (!h.files.empty()) return fmt::format("{} test rows of {}", test_rows(r), join(h.files, ", "));
  if (h.how == Holdout::kNamed)
    return fmt::format("{}-fold cross-validation, folds by '{}'", h.folds, h.column);
  if (h.how == Holdout::kForward)
    return fmt::format("{} later blocks of each agent by '{}', from the blocks before", h.folds - 1,
                       h.column);
  return fmt::format("{}-fold cross-validation within agents", h.folds);
}

std::string with_interval(const Estimate& e) {
  return std::isfinite(e.lo) ? fmt::format("{:.3g} [{:.3g}, {:.3g}]", e.mean, e.lo, e.hi)
                             : fmt::format("{:.3g}", e.mean);
}

namespace {

// The change of the loss in units people know: "19 % less; RMSE 13.4 to 12.1".
std::string in_known_units(const FitResult& r) {
  const double from = r.loss.independent, to = r.loss.chosen;
  std::string text =
      fmt::format("{:.3g} % {}", 100 * std::abs(1 - to / from), to <= from ? "less" : "more");
  if (!r.model.encoding.classes.empty())
    text += fmt::format("; accuracy {:.3g} to {:.3g}", r.accuracy.independent, r.accuracy.chosen);
  else if (r.model.encoding.numeric() && !r.model.encoding.values)
    text += fmt::format("; RMSE {:.4g} to {:.4g}", std::sqrt(from), std::sqrt(to));
  return text;
}

// "an estimated 93 % of 12 agents gained: 7 surely, 0 surely lost".
std::string who_gained(const FitResult& r) {
  return fmt::format("an estimated {:.0f} % of {} agents gained: {} surely, {} surely lost",
                     100 * r.expect_gain / static_cast<double>(r.agents.size()), r.agents.size(),
                     r.gained, r.lost);
}

}  // namespace

namespace {

// Of agents that joined a centre: beside their own rows alone, and beside the centre alone.
std::string joined_headline(const FitResult& r) {
  const bool one = r.agents.size() == 1;
  const std::string verdict =
      one ? fmt::format(
                "; expected gain {}, which is {}", with_interval(r.agents[0].gain),
                r.agents[0].verdict == Outcome::kEven ? "about even" : to_text(r.agents[0].verdict))
          : fmt::format("; gain {}; {}", with_interval(r.gain), who_gained(r));
  return fmt::format(
      "with a centre of {} other agents the {} on {} is {:.4g}; {:.4g} from {} own rows alone "
      "({}), {:.4g} "
      "by the centre alone{}",
      r.model.centre_agents, measure_name(r.model.encoding), scored_rows(r), r.loss.chosen,
      r.loss.independent, one ? "its" : "their", in_known_units(r), r.loss.pooled, verdict);
}

}  // namespace

std::string headline(const FitResult& r) {
  const std::size_t n = r.agents.size();
  if (!r.scored)
    return fmt::format("{} agents have a model each; not scored, so no gain is known",
                       r.model.agents.size());
  if (r.model.joined) return joined_headline(r);
  if (n == 1)
    return fmt::format("one agent, so its own model is all there is: {} {:.4g} on {}",
                       measure_name(r.model.encoding), r.loss.chosen, scored_rows(r));
  const char* const comma = r.model.solver == SolverKind::kStream ? "," : "";
  std::string text = fmt::format(
      "learning together took the {0}{1} on {2}{1} from {3:.4g} to {4:.4g} ({5}; gain {6}); {7}",
      measure_name(r.model.encoding), comma, scored_rows(r), r.loss.independent, r.loss.chosen,
      in_known_units(r), with_interval(r.gain), who_gained(r));
  std::size_t least = n;
  for (std::size_t i = 0; i < n; ++i) {
    const double gain = r.agents[i].gain.mean;
    if (!std::isnan(gain) && (least == n || gain < r.agents[least].gain.mean)) least = i;
  }
  if (least < n)
    text += fmt::format("; worst agent {}: gain {}", r.model.agents[least].name,
                        with_interval(r.agents[least].gain));
  return text;
}

std::string verdict_legend(const Model& model, double level) {
  const std::string from =
      model.joined ? "from the posterior of the agent's coefficients, and its held-out rows"
                   : fmt::format("estimated from {} of all agents (empirical Bayes)",
                                 scored_rows(model.solver));
  return fmt::format(
      "gain: expected on {}, {}; %: of the independent model's expected error; chance: probability "
      "that the gain is "
      "above 0; gained, lost: the {:g} % interval excludes 0 and the gain is at least 1 % of the "
      "error",
      model.solver == SolverKind::kStream
          ? "such rows"
          : "new rows from models of all rows (the losses beside it are of models of fewer rows)",
      from, 100 * level);
}

}  // namespace affpcl
