#include "affpcl/output/affinity_file.h"

#include <fmt/format.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/base/files.h"
#include "affpcl/output/fit_json-inl.h"

namespace affpcl {
namespace {

Json to_json(const Estimate& e) {
  return {{"value", e.mean}, {"lo", e.lo}, {"hi", e.hi}};  // NaN becomes null
}

struct Named {
  const char* name;
  Estimate AgentPilot::*score;
};
constexpr Named kNamed[] = {{"environment", &AgentPilot::environment},
                            {"delta_cen", &AgentPilot::delta_cen},
                            {"lambda", &AgentPilot::lambda},
                            {"predicted_excess", &AgentPilot::excess},
                            {"predicted_loss", &AgentPilot::loss},
                            {"predicted_gain", &AgentPilot::gain}};

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

}  // namespace affpcl
