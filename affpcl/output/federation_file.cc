#include "affpcl/output/federation_file.h"

#include <cmath>
#include <variant>

#include "affpcl/base/json.h"
#include "affpcl/output/fit_json-inl.h"
#include "affpcl/output/model_file.h"

namespace affpcl {
namespace {

constexpr std::string_view kAgents = "number of agents";  // which `privacy` does not hide

const char* said_by(Collective collective, bool masked, bool is_private) {
  if (is_private && collective == Collective::kSum)
    return "computed from the release with noise alone: no more of a row than `privacy` says";
  if (collective == Collective::kTexts)
    return "texts, readable by the centre and by all sites: names of columns, levels and classes, "
           "or "
           "their lengths";
  return masked
             ? "masked numbers: the centre and the other sites learn the sum over all sites only"
             : "sums over this site's agents, readable by the centre; the sites learn the sum over "
               "all sites";
}

}  // namespace

std::string centre_json(const Model& model, bool of_sites) {
  Model common = model;
  common.agents.clear();
  common.files.clear();
  common.command.clear();
  if (of_sites) common.encoding.agent_column.clear();
  common.encoding.reading = {};
  for (Source& s : common.encoding.sources)
    if (s.dates != DateOrder::kNone) s.dates = DateOrder::kYearFirst;
  return model_json(common);
}

std::string centre_json(const SiteStudy& study) {
  const auto estimate = [](const Estimate& e) {
    return std::isnan(e.mean) ? Json(nullptr) : Json{{"mean", e.mean}, {"lo", e.lo}, {"hi", e.hi}};
  };
  Json settings = Json::array();
  for (std::size_t s = 0; s < study.common.size(); ++s) {
    const SettingResult& result = study.result.settings[s];
    Json at = Json::object(), diverged = Json::object(), methods = Json::array();
    for (const auto& [key, value] : result.at)
      at[key] = std::visit([](const auto& v) { return Json(v); }, value);
    for (const auto& [name, count] : result.diverged) diverged[name] = count;
    for (std::size_t m = 0; m < result.methods.size(); ++m) {
      const MethodResult& method = result.methods[m];
      Json curve = Json::array();
      for (const Curve& c : method.curves)
        for (std::size_t t = 0; t < c.steps.size(); ++t)
          curve.push_back({{"step", c.steps[t]}, {"mse", estimate(c.mse[t])}});
      methods.push_back({{"name", method.name},
                         {"kind", method.kind},
                         {"mse", estimate(method.mse)},
                         {"vs_independent", estimate(method.vs_independent)},
                         {"x", study.common[s][m].x},
                         {"theta", study.common[s][m].theta},
                         {"curve", std::move(curve)}});
    }
    settings.push_back({{"at", std::move(at)},
                        {"replicates", result.replicates},
                        {"used", result.used},
                        {"diverged", std::move(diverged)},
                        {"unknowns", result.unknown_names},
                        {"methods", std::move(methods)}});
  }
  std::int64_t agents = 0;
  for (const std::int64_t n : study.agents) agents += n;
  return pretty(
      Json{{"kind", "centre of a study"}, {"agents", agents}, {"settings", std::move(settings)}});
}

std::string ledger_json(const SiteProcesses& site, const Model& model) {
  Json sent = Json::array();
  for (const LedgerEntry& e : site.ledger())
    sent.push_back({{"purpose", e.purpose},
                    {"what", name_of(e.collective)},
                    {"masked", e.masked && e.collective == Collective::kSum},
                    {"messages", e.messages},
                    {"numbers", e.numbers},
                    {"bytes", e.bytes},
                    {"says", said_by(e.collective, e.masked,
                                     model.privacy != nullptr && e.purpose != kAgents)}});
  Json ledger{{"site", site.name()}, {"sites", site.sites()}, {"sent", std::move(sent)}};
  if (model.privacy) ledger["privacy"] = privacy_json(*model.privacy);
  return pretty(ledger);
}

std::string ledger_json(const FederationCentre& centre) {
  Json totals = Json::array();
  for (const FederationCentre::Entry& e : centre.ledger())
    totals.push_back({{"purpose", e.purpose},
                      {"what", name_of(e.collective)},
                      {"totals", e.totals},
                      {"numbers", e.numbers}});
  return pretty(Json{{"sites", centre.sites()},
                     {"instruction_set", centre.instruction_set()},
                     {"rounds", centre.rounds()},
                     {"bytes_received", centre.bytes_received()},
                     {"totals", std::move(totals)}});
}

}  // namespace affpcl
