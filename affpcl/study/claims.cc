#include "affpcl/study/claims.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

double number_of(const Value& v) {
  if (const auto* x = std::get_if<double>(&v)) return *x;
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
  return std::nan("");
}

class Judge {
 public:
  Judge(const std::string& name, const StudyResult& result) : name_(name), result_(result) {}

  Verdict operator()(const toml::table& claim) const {
    Verdict v;
    v.says = text(claim, "says");
    const toml::array* range = claim["range"].as_array();
    if (range == nullptr || range->size() != 2) fail("a claim needs range = [lo, hi]");
    v.lo = range->get(0)->value<double>().value_or(std::nan(""));
    v.hi = range->get(1)->value<double>().value_or(std::nan(""));

    const std::string kind = text(claim, "kind");
    const std::vector<const SettingResult*> settings = chosen(claim);
    if (kind == "value") {
      if (settings.size() != 1)
        fail(fmt::format("'{}' is about {} settings instead of one", v.says, settings.size()));
      v.measured = value(claim, *settings.front());
    } else if (kind == "slope" || kind == "falls") {
      std::vector<double> x, y;
      for (const SettingResult* s : settings) {
        x.push_back(key(*s, text(claim, "along")));
        y.push_back(value(claim, *s));
      }
      if (x.size() < 2) fail(fmt::format("'{}' is about fewer than two settings", v.says));
      v.measured = kind == "slope" ? log_slope(x, y) : falls(y);
    } else {
      fail(fmt::format("a claim's kind is '{}', not value, slope or falls", kind));
    }
    v.holds = v.measured >= v.lo && v.measured <= v.hi;
    return v;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw BadInput(fmt::format("{}: {}", name_, what));
  }

  std::string text(const toml::table& claim, const char* field) const {
    const auto found = claim[field].value<std::string>();
    if (!found) fail(fmt::format("a claim lacks '{}'", field));
    return *found;
  }

  double key(const SettingResult& s, const std::string& name) const {
    for (const auto& [at, value] : s.at)
      if (at == name) return number_of(value);
    fail(fmt::format("'{}' is not swept", name));
  }

  std::vector<const SettingResult*> chosen(const toml::table& claim) const {
    std::vector<const SettingResult*> out;
    for (const SettingResult& s : result_.settings) {
      bool fits = true;
      if (const toml::table* at = claim["at"].as_table())
        for (const auto& [name, wanted] : *at) {
          bool found = false;
          for (const auto& [k, v] : s.at)
            if (k == name.str()) {
              const auto* word = std::get_if<std::string>(&v);
              found = word != nullptr ? wanted.value<std::string>() == *word
                                      : wanted.value<double>() == number_of(v);
            }
          fits = fits && found;
        }
      if (fits) out.push_back(&s);
    }
    return out;
  }

  double value(const toml::table& claim, const SettingResult& s) const {
    const std::string quantity = text(claim, "quantity"), method = text(claim, "method");
    const double own = of(s, method, quantity);
    if (const auto over = claim["over"].value<std::string>()) return own / of(s, *over, quantity);
    return own;
  }

  double of(const SettingResult& s, const std::string& method, const std::string& quantity) const {
    for (const MethodResult& m : s.methods) {
      if (m.name != method) continue;
      if (quantity == "mse") return m.mse.mean;
      if (quantity == "median") return m.mse.median;
      if (quantity == "vs_independent") return m.vs_independent.mean;
      if (quantity == "central.x") return m.central_x;
      if (quantity == "central.theta") return m.central_theta;
      if (quantity == "diverged") {
        for (const auto& [who, count] : s.diverged)
          if (who == method) return static_cast<double>(count) / static_cast<double>(s.replicates);
      }
      if (quantity.rfind("agent.", 0) == 0) {
        const auto dot = quantity.find('.', 6);
        const std::string what = dot == std::string::npos ? "" : quantity.substr(dot + 1);
        if (quantity == "agent.worst.vs_independent") {
          double worst = -1;
          for (const AgentResult& each : m.agents)
            worst = std::max(worst, each.vs_independent.mean);
          return worst;
        }
        const AgentResult& a = agent(m, quantity.substr(6, dot - 6));
        if (what == "mse") return a.mse.mean;
        if (what == "vs_independent") return a.vs_independent.mean;
      }
      for (const ErrorResult& e : m.errors) {
        if (quantity == "error." + e.name + ".mse") return e.mse.mean;
        if (quantity == "error." + e.name + ".vs_independent") return e.vs_independent.mean;
      }
      fail(fmt::format("'{}' is not a quantity", quantity));
    }
    fail(fmt::format("no method is called '{}'", method));
  }

  const AgentResult& agent(const MethodResult& m, const std::string& number) const {
    char* end = nullptr;
    long long i = std::strtoll(number.c_str(), &end, 10);
    if (i < 0) i += static_cast<long long>(m.agents.size());
    if (end == number.c_str() || *end != 0 || i < 0 || i >= static_cast<long long>(m.agents.size()))
      fail(fmt::format("'agent.{}' is none of the {} agents", number, m.agents.size()));
    return m.agents[static_cast<std::size_t>(i)];
  }

  static double log_slope(std::vector<double> x, std::vector<double> y) {
    for (double& v : x) v = std::log(v);
    for (double& v : y) v = std::log(v);
    return slope(x, y).mean;
  }

  static double falls(const std::vector<double>& y) {
    double count = 0;
    for (std::size_t i = 1; i < y.size(); ++i) count += y[i] < y[i - 1];
    return count;
  }

  const std::string& name_;
  const StudyResult& result_;
};

}  // namespace

std::vector<Verdict> judge(const std::string& claims, const std::string& name,
                           const StudyResult& result) {
  toml::table root;
  try {
    root = toml::parse(claims);
  } catch (const toml::parse_error& e) {
    throw BadInput(
        fmt::format("the claims of {} line {}: {}", name, e.source().begin.line, e.description()));
  }
  std::vector<Verdict> verdicts;
  const Judge one(name, result);
  if (const toml::array* list = root["claim"].as_array())
    for (const toml::node& node : *list)
      if (const toml::table* claim = node.as_table()) verdicts.push_back(one(*claim));
  return verdicts;
}

std::string claims_json(const std::vector<Verdict>& verdicts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Verdict& v : verdicts)
    list.push_back({{"says", v.says},
                    {"measured", v.measured},
                    {"lo", v.lo},
                    {"hi", v.hi},
                    {"holds", v.holds}});
  return list.dump(1) + "\n";
}

}  // namespace affpcl
