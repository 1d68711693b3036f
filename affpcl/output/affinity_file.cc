#include "affpcl/output/affinity_file.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/output/fit_json-inl.h"
#include "affpcl/output/model_file.h"

namespace affpcl {
namespace {

Json to_json(const Estimate& e) {
  return {{"value", e.mean}, {"lo", e.lo}, {"hi", e.hi}};  // NaN becomes null
}

struct Named {
  const char* name;
  Estimate AgentPilot::*score;
};
constexpr Named kNamed[] = {
    {"environment", &AgentPilot::environment}, {"delta_cen", &AgentPilot::delta_cen},
    {"lambda", &AgentPilot::lambda},           {"predicted_excess", &AgentPilot::excess},
    {"predicted_loss", &AgentPilot::loss},     {"predicted_gain", &AgentPilot::gain}};

std::string number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : ""; }

}  // namespace

std::string pilot_summary_json(const PilotResult& r, const PilotSource& source) {
  Json spec = spec_json(r.encoding, r.files);
  spec["pilot"] = source.share;
  Json spreads = Json::array();
  for (Covariance s : r.covariance) spreads.push_back(to_text(s));
  Json all{
      {"manifest",
       manifest(std::move(spec), source.seed, source.command, r.threads, r.seconds, true)},
      {"rows", r.rows},
      {"pilot_rows", r.used},
      {"columns", r.encoding.dim() - 1},
      {"notes", spell_options(r.notes, OptionStyle::kKey)},
      {"spread", std::move(spreads)},
      {"delta_env", to_json(r.delta_env)},
      {"delta_obj", to_json(r.delta_obj)},
      {"noise_share", to_json(r.noise_share)},
      {"intervals",
       {{"delta_env", "a lower bound on the largest; normal, from the scatter of held-out rows"},
        {"environment", "a lower bound; the same"},
        {"delta_cen", "normal, from the scatter of rows"},
        {"delta_obj", "posterior of the agents' coefficients, agents bootstrapped"},
        {"lambda", "delete-a-group jackknife over rows"},
        {"noise_share", "chi-square"},
        {"predicted_excess", "posterior of the agent's coefficients, agents bootstrapped"},
        {"predicted_loss", "the same"},
        {"predicted_gain", "the same"}}},
      {"prospects", {{"gain", r.gain}, {"even", r.even}, {"alone", r.loss}}}};
  if (r.joined())
    all["joined"] = {{"centre_agents", r.centre_agents}, {"centre_rows", r.centre_rows}};
  Json agents = Json::array();
  for (std::size_t i = 0; i < r.agents.size(); ++i) {
    const AgentPilot& a = r.agents[i];
    Json one{{"agent", r.names[i]}, {"rows", a.rows}, {"pilot_rows", a.used}};
    for (const Named& c : kNamed) one[c.name] = to_json(a.*c.score);
    one["prospect"] = r.compares() ? Json(to_text(a.prospect)) : Json();
    one["widened"] = a.widened;
    agents.push_back(std::move(one));
  }
  all["agents"] = std::move(agents);
  Json order = Json::array(), matrix = Json::array();
  for (std::size_t i : r.order) {
    order.push_back(r.names[i]);
    Json row = Json::array();
    for (std::size_t j : r.order) row.push_back(r.distance[i * r.names.size() + j]);
    matrix.push_back(std::move(row));
  }
  all["alike"] = {{"order", std::move(order)}, {"distance", std::move(matrix)}};
  return pretty(all);
}

std::string pilot_agents_csv(const PilotResult& r) {
  std::string out = "agent,rows,pilot_rows";
  for (const Named& c : kNamed) out += fmt::format(",{0},{0}_lo,{0}_hi", c.name);
  out += ",prospect\n";
  for (std::size_t i = 0; i < r.agents.size(); ++i) {
    const AgentPilot& a = r.agents[i];
    out += fmt::format("{},{},{}", csv_field(r.names[i]), a.rows, a.used);
    for (const Named& c : kNamed) {
      const Estimate& e = a.*c.score;
      out += fmt::format(",{},{},{}", number(e.mean), number(e.lo), number(e.hi));
    }
    out += fmt::format(",{}\n", r.compares() ? to_text(a.prospect) : "");
  }
  return out;
}

std::string pilot_matrix_csv(const PilotResult& r) {
  std::string out = "agent";
  for (std::size_t i : r.order) out += fmt::format(",{}", csv_field(r.names[i]));
  out += '\n';
  for (std::size_t i : r.order) {
    out += csv_field(r.names[i]);
    for (std::size_t j : r.order)
      out += fmt::format(",{}", number(r.distance[i * r.names.size() + j]));
    out += '\n';
  }
  return out;
}

namespace {

struct Forecasts {
  std::map<std::string, std::pair<double, std::string>>
      of;  // by agent: predicted loss, and prospect
};

Forecasts read_forecasts(const std::string& path) {
  Forecasts found;
  try {
    const Json summary = parse_json(content_of(path));
    for (const Json& agent : summary.at("agents").elements()) {
      const Json& loss = agent.at("predicted_loss").at("value");
      if (loss.is_null() || agent.at("prospect").is_null()) continue;
      found.of[agent.get<std::string>("agent")] = {loss.get<double>(),
                                                   agent.get<std::string>("prospect")};
    }
  } catch (const BadInput& e) {
    throw BadInput(fmt::format(
        "{} is no forecast, which the affinity of a table writes (`out`): {}", path, e.what()));
  }
  return found;
}

}  // namespace

std::string forecast_note(const std::string& folder, const FitResult& fit) {
  const Forecasts forecasts = read_forecasts(folder + "/summary.json");
  std::vector<double> predicted, found;
  std::size_t should = 0, alone = 0;
  double probability = 0, all = 0, weighted = 0, chosen = 0, independent = 0;
  int gained = 0, lost = 0;  // of those that should gain
  for (std::size_t i = 0; i < fit.agents.size(); ++i) {
    const auto at = forecasts.of.find(fit.model.agents[i].name);
    if (at == forecasts.of.end()) continue;
    const AgentScore& a = fit.agents[i];
    const bool gain = at->second.second == to_text(Prospect::kGain);
    should += gain, alone += at->second.second == to_text(Prospect::kLoss);
    all += a.probability;
    if (gain) {
      probability += a.probability;
      gained += a.verdict == Outcome::kGained, lost += a.verdict == Outcome::kLost;
    }
    if (a.scored_rows == 0) continue;
    const auto rows = static_cast<double>(a.scored_rows);
    weighted += rows * a.loss.independent * at->second.first;
    chosen += rows * a.loss.chosen, independent += rows * a.loss.independent;
    predicted.push_back(at->second.first);
    found.push_back(1 - a.gain.mean / a.loss.independent);
  }
  if (predicted.empty())
    throw BadInput(fmt::format("the forecast in {} is of other agents than this fit", folder));
  std::string note = fmt::format(
      "forecast: {} of {} agents should gain and {} should learn alone, with {:.3f} of the "
      "independent error; "
      "found: an estimated {:.0f} gain, with {:.3f} on held-out rows",
      should, predicted.size(), alone, weighted / independent, all, chosen / independent);
  if (should > 0)
    note += fmt::format(
        "; of those that should gain an estimated {:.0f} do ({} surely, {} surely lost)",
        probability, gained, lost);
  if (predicted.size() > 2)
    note += fmt::format("; rank correlation {:.2f}", rank_correlation(predicted, found));
  return note;
}

}  // namespace affpcl
