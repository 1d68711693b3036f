#include "cli/fit_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/output/fit_headline.h"

namespace affpcl::cli {
namespace {

constexpr std::size_t kShown = 12;  // agents in the table, half from each end

std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "-"; }
std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:+.1f} %", 100 * share) : "-";
}

// The forms of the random-effects covariance, each once.
std::string covariances(const Model& model) {
  std::string text;
  for (const ChannelModel& c : model.channels) {
    const std::string one = to_text(c.covariance);
    if (text.find(one) == std::string::npos) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

std::vector<std::size_t> ordered(const FitResult& r, AgentOrder sort) {
  std::vector<std::size_t> order(r.agents.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by = [&](auto key) {  // the largest first
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  };
  switch (sort) {
    case AgentOrder::kGain:
      by([&](std::size_t i) { return r.agents[i].gain.mean; });
      break;
    case AgentOrder::kLeastGain:
      by([&](std::size_t i) { return -r.agents[i].gain.mean; });
      break;
    case AgentOrder::kLoss:
      by([&](std::size_t i) { return r.agents[i].loss.chosen; });
      break;
    case AgentOrder::kRows:
      by([&](std::size_t i) { return r.model.agents[i].rows; });
      break;
    case AgentOrder::kName:
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return r.model.agents[a].name < r.model.agents[b].name;
      });
  }
  return order;
}

// The gain as a share of the independent model's expected error: what the chosen one has, and the gain.
std::string share_of_error(const AgentScore& a) {
  const double independent = a.loss.chosen + a.gain.mean;
  return independent > 0 ? percent(a.gain.mean / independent) : "";
}

// Agents with their losses and gains; with bars of loss chosen over loss independent where they
// fit.
void print_agents(const FitResult& r, const AgentsShown& shown, const Style& style) {
  constexpr std::size_t kLongestName = 24, kPooled = 10, kInterval = 23, kPercent = 9,
                        kOthers = 2 + 7 + 2 + 9 + 1 + 11 + 2 + 9 + 8 + 2 + 7;
  constexpr std::size_t kLeastBar = 12, kMostBar = 16;
  const Model& m = r.model;
  const std::vector<std::size_t> order = ordered(r, shown.sort);
  const std::size_t most = shown.all ? order.size() : shown.top > 0 ? shown.top : kShown;
  const std::size_t tail = shown.all || shown.top > 0 || order.size() <= most ? 0 : most / 2;
  std::size_t width = 5;
  for (const AgentModel& a : m.agents)
    width = std::max(width, std::min(places(a.name), kLongestName));
  const auto fits = [&](std::size_t more) {
    return style.width == 0 || width + kOthers + more <= style.width;
  };
  const bool percents = fits(kPercent), intervals = fits(kPercent + kInterval),
             pooled = fits(kPercent + kInterval + kPooled);
  const std::size_t used = width + kOthers + kPercent + kInterval + kPooled + 3;
  const std::size_t bar =
      used + kLeastBar <= style.width ? std::min(kMostBar, style.width - used) : 0;
  fmt::print("  {:<{}} {:>6}  {:>9} {:>11}", "agent", width, "rows", "chosen", "independent");
  fmt::print("{}  {:>9}{}", pooled ? fmt::format(" {:>9}", m.joined ? "centre" : "pooled") : "",
             "gain", percents ? fmt::format(" {:>8}", "") : "");
  fmt::print("{} {:>7}{}  verdict\n",
             intervals ? fmt::format(" {:<22}", fmt::format("{:g} % interval", 100 * r.level)) : "",
             "chance", bar > 0 ? fmt::format("  {:<{}}", "chosen / independent", bar + 1) : "");
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k == most - tail && order.size() > most) {
      fmt::print("  … {} more (--all, --top N, --sort; all in summary.json with --out)\n",
                 order.size() - most);
      k = order.size() - tail;
      if (k == order.size()) break;
    }
    const std::size_t i = order[k];
    const AgentScore& a = r.agents[i];
    const std::string name = clipped(m.agents[i].name, kLongestName);
    const std::string interval = std::isfinite(a.gain.lo)
                                     ? fmt::format("[{}, {}]", number(a.gain.lo), number(a.gain.hi))
                                     : "";
    std::string row = "  " + name + std::string(width - places(name), ' ');
    row += fmt::format(" {:>6}  {:>9} {:>11}", m.agents[i].rows, number(a.loss.chosen),
                       number(a.loss.independent));
    if (pooled) row += fmt::format(" {:>9}", number(a.loss.pooled));
    row += fmt::format("  {:>9}", number(a.gain.mean));
    if (percents) row += fmt::format(" {:>8}", share_of_error(a));
    if (intervals) row += fmt::format(" {:<22}", interval);
    row += fmt::format(" {:>7.3f}", a.probability);
    if (bar > 0) row += "  " + ratio_bar(a.loss.chosen / a.loss.independent, bar);
    fmt::print("{}  {}{}\n", row, to_text(a.verdict), a.why.empty() ? "" : "; " + a.why);
  }
}

std::string held_out_heading(const FitResult& r) {
  return r.held_out.how == Holdout::kDealt && r.held_out.files.empty()
             ? fmt::format("on {} ({} x {}-fold)", scored_rows(r), r.repeats, r.held_out.folds)
             : "on " + scored_rows(r);
}

// The scores of the chosen models and of the two baselines over all held-out rows.
void print_scores(const FitResult& r) {
  const Model& m = r.model;
  const bool classify = !m.encoding.classes.empty();
  const bool squared = m.encoding.numeric();
  fmt::print("{:<29} {:>9} {:>12} {:>12}\n",
             m.solver == SolverKind::kExact ? held_out_heading(r) : "predicted, then learnt",
             "chosen", "independent", m.joined ? "centre" : "pooled");
  const auto line = [](const char* name, const Losses& l, auto show) {
    fmt::print("  {:<24} {:>12} {:>12} {:>12}\n", name, show(l.chosen), show(l.independent),
               show(l.pooled));
  };
  line(measure_name(m.encoding), r.loss, number);
  line("  beside independent", r.loss, [&](double loss) {
    return loss == r.loss.independent ? "" : percent(loss / r.loss.independent - 1);
  });
  if (squared) line("RMSE", r.loss, [](double loss) { return number(std::sqrt(loss)); });
  if (classify) {
    line("accuracy", r.accuracy, number);
    line("AUC", r.classes.auc, number);
    line("Brier score", r.brier, number);
    line("calibration error", r.classes.calibration_error, number);
  }
  if (squared && !m.encoding.values) line("R^2", r.r2, number);
  if (r.unseen.rows > 0 && m.encoding.outcomes.empty())
    fmt::print("  {} test row{} of {} unseen agent{}: {} {}{}\n", r.unseen.rows,
               r.unseen.rows == 1 ? "" : "s", r.unseen.agents, r.unseen.agents == 1 ? "" : "s",
               measure_name(m.encoding), number(r.unseen.loss),
               classify ? fmt::format(", accuracy {}", number(r.unseen.accuracy)) : "");
}

}  // namespace

void print_fit(const FitResult& r, const AgentsShown& agents, const Style& style) {
  const Model& m = r.model;
  fmt::print("{} agents, {} rows, {} columns; {} of '{}'; {}\n", m.agents.size(), m.rows,
             m.encoding.dim() - 1,
             m.encoding.values             ? "temporal differences"
             : !m.encoding.classes.empty() ? fmt::format("{} classes", m.encoding.classes.size())
             : m.encoding.generalised()    ? fmt::format("{} family", to_text(m.encoding.family))
                                           : "regression",
             m.encoding.predicted(),
             m.joined ? fmt::format("joined to a centre of {} agents and {} rows", m.centre_agents,
                                    m.centre_rows)
             : m.solver == SolverKind::kExact ? "random-effects covariance: " + covariances(m)
                                              : "in one pass by " + m.method);
  for (const std::string& note : r.notes)
    fmt::print("  note: {}\n", spell_options(note, OptionStyle::kCommandLine));
  if (!r.scored) {
    fmt::print("not scored\n");
    return;
  }
  print_scores(r);
  print_agents(r, agents, style);
  fmt::print("{}\n", wrapped(verdict_legend(m, r.level), style));
  std::fputs(headline_text(headline(r), style).c_str(), stdout);
}

}  // namespace affpcl::cli
