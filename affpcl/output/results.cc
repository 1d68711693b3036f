#include "affpcl/output/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "affpcl/base/json.h"
#include "affpcl/math/kernels.h"
#include "affpcl/output/model_file.h"
#include "affpcl/output/study_headline.h"
#include "affpcl/version.h"

namespace affpcl {
namespace {

Json to_json(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json to_json(const Estimate& e, bool with_median) {  // what is not finite is printed as null
  Json j{{"mean", e.mean}, {"lo", e.lo}, {"hi", e.hi}};
  if (with_median) j["median"] = e.median;
  return j;
}

Json vs_json(const Estimate& e) { return std::isnan(e.mean) ? Json(nullptr) : to_json(e, false); }

// 15, but 4.5.
Json traffic(double numbers) {
  if (numbers == std::floor(numbers)) return static_cast<std::int64_t>(numbers);
  return numbers;
}

Json headline_json(const SettingResult& s) {
  const Headline h = headline(s);
  Json worst = nullptr;
  for (const MethodResult& m : s.methods)
    if (m.name == h.method && h.worst >= 0) {
      worst = to_json(m.agents[static_cast<std::size_t>(h.worst)].vs_independent, false);
      worst["agent"] = h.worst;
    }
  return {{"text", h.text},       {"method", h.method},
          {"samples", h.samples}, {"samples_alone", h.samples_alone},
          {"gained", h.gained},   {"even", h.even},
          {"lost", h.lost},       {"worst", std::move(worst)}};
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// A million agents as JSON values would take more memory than the study: they are written one by
// one, and the rest of the summary has a placeholder where they go.
std::string agents_text(const SettingResult& s, const MethodResult& m) {
  const std::string margin(6, ' ');
  std::string text = "[";
  for (std::size_t i = 0; i < m.agents.size(); ++i) {
    Json agent{{"agent", i},
               {"mse", to_json(m.agents[i].mse, true)},
               {"vs_independent", vs_json(m.agents[i].vs_independent)}};
    if (!s.distance.empty()) agent["distance"] = s.distance[i];
    for (std::size_t c = 0; c < m.columns.size(); ++c) agent[m.columns[c]] = m.agents[i].columns[c];
    text += i == 0 ? "\n" + margin : ",\n" + margin;
    for (char letter : print_json(agent, {.indent = 1})) {
      text += letter;
      if (letter == '\n') text += margin;
    }
  }
  return text + (m.agents.empty() ? "]" : fmt::format("\n{}]", margin.substr(1)));
}

std::string placeholder(std::size_t number) { return fmt::format("\x01{}", number); }

std::string filled(const std::string& text, const std::vector<std::string>& agents) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const std::string mark = print_json(placeholder(i));
    const std::size_t at = text.find(mark, from);
    out.append(text, from, at - from).append(agents[i]);
    from = at + mark.size();
  }
  return out.append(text, from);
}

std::string number(double x) { return std::isfinite(x) ? fmt::format("{}", x) : ""; }

std::string plain(const Value& value) {
  if (const auto* s = std::get_if<std::string>(&value)) return csv_field(*s);
  return csv_field(to_text(value));
}

std::string header(const StudyResult& result, const char* columns) {
  std::string line;
  if (!result.settings.empty())
    for (const auto& [key, value] : result.settings.front().at) line += csv_field(key) + ",";
  return line + columns + "\n";
}

std::string place(const SettingResult& setting) {
  std::string cells;
  for (const auto& [key, value] : setting.at) cells += plain(value) + ",";
  return cells;
}

}  // namespace

std::string summary_json(const Study& study, const StudyResult& result,
                         const std::string& command) {
  Json manifest{{"version", kVersion},
                {"study", study.name},
                {"spec", parse_json(study.json)},
                {"spec_toml", study.toml},
                {"seed", study.settings.empty() ? 0 : study.settings.front().spec.run.seed},
                {"command", command},
                {"host", host()},
                {"instruction_set", instruction_set()},
                {"compiler", kCompiler},
                {"threads", result.threads},
                {"ranks", result.ranks},
                {"seconds", result.seconds},
                {"peak_bytes", result.peak_bytes},
                {"complete", result.complete}};
  if (result.ranks > 1)
    manifest["communication"] = {{"bytes_sent", result.bytes_sent},
                                 {"seconds", result.communication_seconds}};
  Json settings = Json::array();
  std::vector<std::string> texts;  // of agents, by method
  for (const SettingResult& s : result.settings) {
    Json at = Json::object(), diverged = Json::object(), methods = Json::array();
    for (const auto& [key, value] : s.at) at[key] = to_json(value);
    for (const auto& [name, count] : s.diverged) diverged[name] = count;
    for (const MethodResult& m : s.methods) {
      Json errors = Json::object();
      for (const ErrorResult& e : m.errors)
        errors[e.name] = {{"mse", to_json(e.mse, true)},
                          {"vs_independent", vs_json(e.vs_independent)}};
      Json comm{{"up", traffic(m.up)}, {"down", traffic(m.down)}};
      if (m.published.up > 0) {
        comm["up_algorithm1"] = traffic(m.present * static_cast<double>(m.published.up));
        comm["down_algorithm1"] = traffic(m.present * static_cast<double>(m.published.down));
      }
      const bool watched = std::count(m.columns.begin(), m.columns.end(), "drift_z") > 0;
      methods.push_back({{"name", m.name},
                         {"kind", m.kind},
                         {"mse", to_json(m.mse, true)},
                         {"vs_independent", vs_json(m.vs_independent)},
                         {"by_replicate", m.by_replicate},
                         {"central", {{"x", m.central_x}, {"theta", m.central_theta}}},
                         {"errors", std::move(errors)},
                         {"alarm", watched ? Json{{"agents", m.alarm.agents},
                                                  {"largest", m.alarm.largest},
                                                  {"too_short", m.alarm.too_short}}
                                           : Json(nullptr)},
                         {"agents", placeholder(texts.size())},
                         {"comm", std::move(comm)},
                         {"seconds", m.seconds}});
      texts.push_back(agents_text(s, m));
    }
    settings.push_back({{"at", std::move(at)},
                        {"replicates", s.replicates},
                        {"used", s.used},
                        {"numbers", s.numbers},
                        {"steps", s.steps},
                        {"diverged", std::move(diverged)},
                        {"headline", headline_json(s)},
                        {"methods", std::move(methods)}});
  }
  const Json all{{"manifest", std::move(manifest)},
                 {"headline", headline(result)},
                 {"settings", std::move(settings)}};
  return filled(print_json(all, {.indent = 1}), texts) + "\n";
}

std::string curves_csv(const StudyResult& result) {
  std::string out = header(result, "method,agent,step,mse_mean,mse_lo,mse_hi,mse_median");
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (const Curve& c : m.curves) {
        const std::string start = place(s) + csv_field(m.name) + "," +
                                  (c.agent < 0 ? "all" : std::to_string(c.agent)) + ",";
        for (std::size_t t = 0; t < c.steps.size(); ++t) {
          const Estimate& e = c.mse[t];
          out += fmt::format("{}{:.0f},{},{},{},{}\n", start, c.steps[t], number(e.mean),
                             number(e.lo), number(e.hi), number(e.median));
        }
      }
  return out;
}

std::string agents_csv(const StudyResult& result) {
  // What any method knows of its agents is a column; it is empty for the others.
  std::vector<std::string> more;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (const std::string& c : m.columns)
        if (std::find(more.begin(), more.end(), c) == more.end()) more.push_back(c);
  std::string names = "method,agent,mse_mean,mse_lo,mse_hi,vs_independent,vs_lo,vs_hi";
  const bool near = std::any_of(result.settings.begin(), result.settings.end(),
                                [](const SettingResult& s) { return !s.distance.empty(); });
  if (near) names += ",distance";
  for (const std::string& c : more) names.append(",").append(csv_field(c));
  std::string out = header(result, names.c_str());
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (std::size_t i = 0; i < m.agents.size(); ++i) {
        const Estimate &e = m.agents[i].mse, &v = m.agents[i].vs_independent;
        out +=
            fmt::format("{}{},{},{},{},{},{},{},{}", place(s), csv_field(m.name), i, number(e.mean),
                        number(e.lo), number(e.hi), number(v.mean), number(v.lo), number(v.hi));
        if (near) out += fmt::format(",{}", s.distance.empty() ? "" : number(s.distance[i]));
        for (const std::string& name : more) {
          const auto c = std::find(m.columns.begin(), m.columns.end(), name);
          out += ",";
          if (c != m.columns.end())
            out += number(m.agents[i].columns[static_cast<std::size_t>(c - m.columns.begin())]);
        }
        out += "\n";
      }
  return out;
}

std::string solutions_csv(const StudyResult& result) {
  std::string out;
  for (const SettingResult& s : result.settings)
    for (const MethodResult& m : s.methods)
      for (std::size_t j = 0; j < m.solution.size(); ++j) {
        const std::size_t d = s.unknown_names.size();
        if (out.empty()) out = header(result, "method,agent,name,unknown,value");
        out += fmt::format("{}{},{},{},{},{}\n", place(s), csv_field(m.name), j / d,
                           csv_field(s.agent_names[j / d]), csv_field(s.unknown_names[j % d]),
                           number(m.solution[j]));
      }
  return out;
}

void write_results(ResultFolder& folder, const Study& study, const StudyResult& result,
                   const std::string& command) {
  folder.add("summary.json", summary_json(study, result, command));
  folder.add("curves.csv", curves_csv(result));
  folder.add("agents.csv", agents_csv(result));
  if (const std::string solutions = solutions_csv(result); !solutions.empty())
    folder.add("solutions.csv", solutions);
  folder.commit();
}

Held held_result(const std::string& folder, const Study& study) {
  try {
    const Json summary = parse_json(content_of(folder + "/summary.json"));
    const Json* manifest = summary.find("manifest");
    const Json* spec = manifest == nullptr ? nullptr : manifest->find("spec");
    if (spec == nullptr || !(*spec == parse_json(study.json))) return Held::kOther;
    return manifest->get_or("complete", false) ? Held::kComplete : Held::kIncomplete;
  } catch (const std::exception&) {  // no summary, or not one of ours
    return Held::kOther;
  }
}

}  // namespace affpcl
