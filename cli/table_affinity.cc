#include "cli/table_affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "affpcl/base/error.h"
#include "affpcl/base/utf8.h"
#include "affpcl/output/fit_headline.h"

namespace affpcl::cli {
namespace {

constexpr std::size_t kShown = 12;  // agents, half from each end
constexpr std::size_t kPairs = 5;   // that look most, and least, alike
constexpr double kUnlike = 1.5;     // an agent whose spread is widened by more is worth a word

std::string text(const Estimate& e) {
  return std::isfinite(e.mean) ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", e.mean, e.lo, e.hi) : "-";
}

// Of a lower bound on what is at least 0.
std::string bound(Estimate e) {
  for (double* v : {&e.mean, &e.lo, &e.hi})
    if (*v < 0) *v = 0;
  return text(e);
}

// The first letters of a name.
std::string shortened(const std::string& name, std::size_t letters = 24) {
  std::size_t bytes = 0;
  for (; letters > 0 && bytes < name.size(); --letters)
    bytes += utf8_letter(std::string_view(name).substr(bytes));
  return name.substr(0, bytes);
}

// A column of the agents' table: its name, what it means, and a cell.
struct AgentColumn {
  const char *name, *doc;
  std::string (*cell)(const AgentPilot&);
};
constexpr AgentColumn kColumns[] = {
    {"loss",
     "expected error on new rows, learnt with the others, over that of learning alone; below 1 "
     "they help",
     [](const AgentPilot& a) { return text(a.loss); }},
    {"excess", "the same of the error beyond the noise, which no model avoids",
     [](const AgentPilot& a) { return text(a.excess); }},
    {"delta_cen", "distance from the mean of all agents, in columns or in outcome; 0 is none",
     [](const AgentPilot& a) { return text(a.delta_cen); }},
    {"TV", "total variation between its columns and those of all agents: a lower bound",
     [](const AgentPilot& a) { return bound(a.environment); }},
    {"lambda",
     "smallest eigenvalue of its standardised columns' second moment; near 0 it cannot learn alone",
     [](const AgentPilot& a) { return text(a.lambda); }},
};

std::string remark(const PilotResult& r, const AgentPilot& a) {
  if (r.agents.size() == 1) return "";
  return fmt::format("{}{}", to_text(a.prospect), a.widened > kUnlike ? "; unlike the others" : "");
}

void print_agents(const PilotResult& r) {
  std::vector<std::size_t> order(r.agents.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return r.agents[a].loss.mean < r.agents[b].loss.mean;
  });
  std::size_t width = 5;
  for (const std::string& name : r.names) width = std::clamp(name.size(), width, std::size_t{24});
  std::vector<AgentColumn> columns;  // that have a number for any agent
  for (const AgentColumn& column : kColumns)
    if (std::any_of(r.agents.begin(), r.agents.end(),
                    [&](const AgentPilot& a) { return column.cell(a) != "-"; }))
      columns.push_back(column);
  fmt::print("  {:<{}} {:>6} {:>6} ", "agent", width, "rows", "pilot");
  for (const AgentColumn& column : columns) fmt::print(" {:<21}", column.name);
  fmt::print("{}\n", r.agents.size() > 1 ? " forecast" : "");
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order.size() > kShown && k == kShown / 2) {
      fmt::print("  … {} more, in affinity.csv (--out)\n", order.size() - kShown);
      k = order.size() - kShown / 2;
    }
    const AgentPilot& a = r.agents[order[k]];
    fmt::print("  {:<{}} {:>6} {:>6} ", shortened(r.names[order[k]]), width, a.rows, a.used);
    for (const AgentColumn& column : columns) fmt::print(" {:<21}", column.cell(a));
    fmt::print(" {}\n", remark(r, a));
  }
  fmt::print("  pilot: rows looked at; with 90 % intervals:\n");
  for (const AgentColumn& column : columns) fmt::print("  {:<10} {}\n", column.name, column.doc);
  if (r.agents.size() > 1)
    fmt::print(
        "  forecast   from the interval of loss: should gain below .99, should learn alone above "
        "1.01\n");
}

// A pair of agents and how well they can be told apart.
struct Pair {
  double distance;
  std::size_t a, b;
};

void print_pairs(const PilotResult& r) {
  const std::size_t n = r.names.size();
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) pairs.push_back({r.distance[i * n + j], i, j});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.distance < b.distance; });
  const std::size_t shown = std::min(kPairs, pairs.size() / 2);
  const auto line = [&](const char* what, std::size_t from, std::size_t to) {
    fmt::print("  {}:", what);
    for (std::size_t k = from; k < to; ++k)
      fmt::print("{} {} and {} ({:.2f})", k == from ? "" : ",", shortened(r.names[pairs[k].a]),
                 shortened(r.names[pairs[k].b]), pairs[k].distance);
    fmt::print("\n");
  };
  line("most alike", 0, shown);
  line("least alike", pairs.size() - shown, pairs.size());
}

void print_matrix(const PilotResult& r) {
  const std::size_t n = r.names.size();
  fmt::print("  {:<24}", "");
  for (std::size_t j : r.order) fmt::print(" {:>5}", shortened(r.names[j], 5));
  fmt::print("\n");
  for (std::size_t i : r.order) {
    fmt::print("  {:<24}", shortened(r.names[i]));
    for (std::size_t j : r.order) fmt::print(" {:>5.2f}", r.distance[i * n + j]);
    fmt::print("\n");
  }
}

// The gain that each agent should have from a centre.
void print_joined(const PilotResult& r) {
  fmt::print(
      "{} agent{}, {} of {} rows, {} columns; target '{}'; a centre of {} agents and {} rows\n",
      r.agents.size(), r.agents.size() == 1 ? "" : "s", r.used, r.rows, r.encoding.dim() - 1,
      r.encoding.target, r.centre_agents, r.centre_rows);
  for (const std::string& note : r.notes)
    fmt::print("  note: {}\n", spell_options(note, OptionStyle::kCommandLine));
  std::size_t width = 5;
  for (const std::string& name : r.names) width = std::clamp(name.size(), width, std::size_t{24});
  fmt::print("  {:<{}} {:>6} {:>6}  {:<28} {:<22} {}\n", "agent", width, "rows", "pilot",
             "expected gain", "loss, of alone", "");
  for (std::size_t i = 0; i < r.agents.size(); ++i) {
    if (r.agents.size() > kShown && i == kShown) {
      fmt::print("  … {} more, in affinity.csv (--out)\n", r.agents.size() - kShown);
      break;
    }
    const AgentPilot& a = r.agents[i];
    fmt::print("  {:<{}} {:>6} {:>6}  {:<28} {:<22} {}\n", shortened(r.names[i]), width, a.rows,
               a.used, fmt::format("{:.4g} [{:.4g}, {:.4g}]", a.gain.mean, a.gain.lo, a.gain.hi),
               text(a.loss), to_text(a.prospect));
  }
  fmt::print(
      "expected on new rows once all rows are used, with the centre instead of learning alone: the "
      "gain "
      "in {0}, and the {0} over that of learning alone, with 90 % intervals; nothing was sent\n",
      measure_name(r.encoding));
}

}  // namespace

void print_pilot(const PilotResult& r) {
  if (r.joined()) return print_joined(r);
  fmt::print("{} agents, {} of {} rows, {} columns; target '{}'\n", r.agents.size(), r.used, r.rows,
             r.encoding.dim() - 1, r.encoding.target);
  for (const std::string& note : r.notes)
    fmt::print("  note: {}\n", spell_options(note, OptionStyle::kCommandLine));
  const auto line = [](const char* name, const Estimate& e, const char* doc) {
    fmt::print("  {:<12} {:<24} {}\n", name, bound(e), doc);
  };
  line("delta_env", r.delta_env, "largest distance of two agents' columns: a lower bound");
  line("delta_obj", r.delta_obj, "largest distance of two agents' coefficients");
  line("noise", r.noise_share, "share of the target's variance that no column explains");
  if (r.agents.size() > 1)
    fmt::print("forecast: {} of {} agents should gain, {} about even, {} should learn alone\n",
               r.gain, r.agents.size(), r.even, r.loss);
  print_agents(r);
  if (r.order.size() > 1) {
    fmt::print(
        "who looks alike (differences in units of their standard error; above 2 is clear)\n");
    if (r.order.size() <= kShown) print_matrix(r);
    if (r.order.size() > kShown) print_pairs(r);
  }
  if (r.agents.size() > 1)
    fmt::print("`affpcl fit` measures what came of it; with --out here, its --forecast says so\n");
}

}  // namespace affpcl::cli
