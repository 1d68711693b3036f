#include <fmt/format.h>

#include <filesystem>

#include "affpcl/base/error.h"
#include "affpcl/output/model_file.h"
#include "affpcl/output/result_folder-inl.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

// Follows the keys that the page relies on, and names the first that is not as it should be.
class Checker {
 public:
  explicit Checker(std::string path) : path_(std::move(path)) {}

  void study(const Json& j) const {
    manifest(j);
    for (const Json& s : list(j, "settings")) {
      for (const JsonMember& m : need(s, "at", &Json::is_object).members())
        if (m.value.is_object() || m.value.is_null()) damaged("at");
      if (s.contains("headline")) need(s, "headline", &Json::is_object);
      for (const char* key : {"replicates", "used", "steps"}) need(s, key, &Json::is_integer);
      whole_numbers(s, "diverged");
      for (const Json& m : list(s, "methods")) {
        need(m, "name", &Json::is_string);
        estimate(m, "mse");
        if (!m.contains("vs_independent") || !m["vs_independent"].is_null())
          estimate(m, "vs_independent");
        need(m, "comm", &Json::is_object);
      }
    }
  }

  void pilot(const Json& j) const {
    manifest(j);
    for (const char* key : {"rows", "pilot_rows"}) need(j, key, &Json::is_integer);
    for (const char* key : {"delta_env", "delta_obj", "noise_share"})
      numbers(j, key, {"value", "lo", "hi"});
    whole_numbers(j, "prospects");
    const Json& alike = need(j, "alike", &Json::is_object);
    const std::size_t n = list(alike, "order").size();
    if (list(alike, "distance").size() != n) damaged("distance");
    for (const Json& row : alike["distance"].elements())
      if (counts(row) != n) damaged("distance");
    for (const Json& a : list(j, "agents")) {
      need(a, "agent", &Json::is_string);
      for (const char* key : {"rows", "pilot_rows"}) need(a, key, &Json::is_integer);
      for (const char* key :
           {"environment", "delta_cen", "lambda", "predicted_excess", "predicted_loss"})
        numbers(a, key, {"value", "lo", "hi"});
    }
  }

  void claims(const Json& j) const {
    if (!j.is_array()) damaged("claims");
    for (const Json& claim : j.elements()) {
      need(claim, "says", &Json::is_string);
      need(claim, "holds", &Json::is_bool);
      for (const char* key : {"measured", "lo", "hi"})
        if (!claim.contains(key) || !(claim[key].is_number() || claim[key].is_null())) damaged(key);
    }
  }

  void fit(const Json& j, const Model& model) const {
    manifest(j);
    const bool scored = j.contains("score") && !j["score"].is_null();
    if (scored) {
      const std::string measure = need(j["score"], "measure", &Json::is_string).string();
      losses(j["score"], measure.c_str());
      estimate(j["score"], "gain");
      whole_numbers(j, "verdicts");
      if (j["score"].contains("calibration")) {
        for (const Json& bin : list(j["score"], "calibration"))
          for (const char* key : {"share", "predicted", "observed"})
            need(bin, key, &Json::is_number);
        for (const char* key : {"auc", "brier", "calibration_error"}) losses(j["score"], key);
      }
      if (j["score"].contains("confusion")) {
        const std::size_t classes = model.encoding.classes.size();
        for (const Json& row : list(j["score"], "confusion"))
          if (counts(row) != classes) damaged("confusion");
        if (j["score"]["confusion"].size() != classes) damaged("confusion");
      }
      if (j["score"].contains("predicted")) {
        const Json& grid = need(j["score"], "predicted", &Json::is_object);
        for (const char* key : {"lo", "hi"}) need(grid, key, &Json::is_number);
        const auto cells =
            static_cast<std::size_t>(need(grid, "cells", &Json::is_integer).get<int>());
        if (!grid.contains("rows") || counts(grid["rows"]) != cells * cells) damaged("predicted");
        const Json& residuals = need(j["score"], "residuals", &Json::is_object);
        for (const char* key : {"from", "width"}) need(residuals, key, &Json::is_number);
        if (!residuals.contains("rows") || counts(residuals["rows"]) == 0) damaged("residuals");
      }
    }
    const Json::Array& agents = list(j, "agents");
    if (agents.size() != model.agents.size()) damaged("agents");
    for (const Json& a : agents) {
      for (const char* key : {"agent", "given"}) need(a, key, &Json::is_string);
      need(a, "rows", &Json::is_integer);
      if (!scored) continue;
      losses(a, "score");
      estimate(a, "gain");
      for (const char* key : {"verdict", "why"}) need(a, key, &Json::is_string);
    }
  }

 private:
  using Is = bool (Json::*)() const noexcept;

  [[noreturn]] void damaged(const std::string& key) const {
    throw BadInput(fmt::format(
        "{} is damaged: '{}' is missing or not what it should be; make the result again", path_,
        key));
  }
  const Json& need(const Json& at, const char* key, Is is) const {
    if (!at.contains(key) || !(at[key].*is)()) damaged(key);
    return at[key];
  }
  const Json::Array& list(const Json& at, const char* key) const {
    return need(at, key, &Json::is_array).elements();
  }
  void whole_numbers(const Json& at, const char* key) const {
    for (const JsonMember& m : need(at, key, &Json::is_object).members())
      if (!m.value.is_integer()) damaged(key);
  }
  void numbers(const Json& at, const char* key, std::initializer_list<const char*> names) const {
    const Json& e = need(at, key, &Json::is_object);
    for (const char* name : names)
      if (!e.contains(name) || !(e[name].is_number() || e[name].is_null())) damaged(key);
  }
  // How many numbers are in a list of nothing else.
  std::size_t counts(const Json& list) const {
    if (!list.is_array()) return 0;
    for (const Json& number : list.elements())
      if (!number.is_number()) return 0;
    return list.size();
  }
  void estimate(const Json& at, const char* key) const { numbers(at, key, {"mean", "lo", "hi"}); }
  void losses(const Json& at, const char* key) const {
    numbers(at, key, {"given", "personalised", "alone", "pooled"});
  }
  void manifest(const Json& j) const {
    const Json& m = need(j, "manifest", &Json::is_object);
    need(m, "command", &Json::is_string);
    need(m, "spec", &Json::is_object);
    need(m, "seed", &Json::is_integer);
  }

  std::string path_;
};

Json parsed(const std::string& path) {
  try {
    return parse_json(content_of(path));
  } catch (const BadJson& e) {
    throw BadInput(fmt::format("{} is damaged: it is not whole JSON ({}); make the result again",
                               path, e.what()));
  }
}

}  // namespace

ResultFiles read_result(const std::string& folder) {
  const fs::path dir(folder);
  std::error_code error;
  if (!fs::is_directory(dir, error))
    throw BadInput(fmt::format(
        "{} is not a folder; run, reproduce, fit and affinity write one (`out`)", folder));
  const fs::path path = dir / "summary.json";
  if (!fs::exists(path, error))
    throw BadInput(fmt::format("{} is not a result folder: it has no summary.json", folder));
  ResultFiles r{folder, {}, {}, {}};
  r.summary = parsed(path.string());
  const bool study = r.summary.contains("settings");
  const auto whole = [&](const char* name) {
    if (!fs::exists(dir / name, error))
      throw BadInput(fmt::format("{} is not whole: it has summary.json, but no {}", folder, name));
  };
  const Checker check(path.string());
  if (study) {
    check.study(r.summary);
    for (const char* name : {"curves.csv", "agents.csv"}) whole(name);
    if (const fs::path claims = dir / "claims.json"; fs::exists(claims, error)) {
      r.claims = parsed(claims.string());
      Checker(claims.string()).claims(r.claims);
    }
  } else if (r.piloted()) {
    check.pilot(r.summary);
  } else {
    if (!r.summary.contains("agents"))
      throw BadInput(fmt::format(
          "{} is neither of a run nor of a fit: it has no settings and no agents", path.string()));
    whole("model.json");
    r.model = read_model(folder);
    check.fit(r.summary, *r.model);
  }
  return r;
}

}  // namespace affpcl
