#include "affpcl/study/claims.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/base/json.h"

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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
    } else if (kind == "largest" || kind == "smallest") {
      std::vector<double> all;
      for (const SettingResult* s : settings) append_values(claim, *s, all);
      if (all.empty()) fail(fmt::format("'{}' is about no setting", v.says));
      v.measured = kind == "largest" ? *std::max_element(all.begin(), all.end())
                                     : *std::min_element(all.begin(), all.end());
      for (const double x : all)
        if (std::isnan(x)) v.measured = x;  // an estimate that is not there proves nothing
    } else if (kind == "slope" || kind == "falls") {
      std::vector<double> x, y;
      for (const SettingResult* s : settings) {
        x.push_back(key(*s, text(claim, "along")));
        y.push_back(value(claim, *s));
      }
      if (x.size() < 2) fail(fmt::format("'{}' is about fewer than two settings", v.says));
      v.measured = kind == "slope" ? log_slope(x, y) : falls(y);
    } else {
      fail(fmt::format("a claim's kind is '{}', not value, largest, smallest, slope or falls",
                       kind));
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
              found = equals(wanted, v);
              if (const toml::array* any = wanted.as_array())
                for (const toml::node& one : *any) found = found || equals(one, v);
            }
          fits = fits && found;
        }
      if (fits) out.push_back(&s);
    }
    return out;
  }

  static bool equals(const toml::node& wanted, const Value& v) {
    const auto* word = std::get_if<std::string>(&v);
    return word != nullptr ? wanted.value<std::string>() == *word
                           : wanted.value<double>() == number_of(v);
  }

  double value(const toml::table& claim, const SettingResult& s) const {
    std::vector<double> values;
    append_values(claim, s, values);
    if (values.size() != 1) fail("a claim about one value has `over` or `steps` for several");
    return values.front();
  }

  // One value for each of `over` and, with `steps`, each point of the curve.
  void append_values(const toml::table& claim, const SettingResult& s,
                     std::vector<double>& out) const {
    const std::string quantity = text(claim, "quantity"), method = text(claim, "method");
    std::vector<std::string> over;
    if (const auto one = claim["over"].value<std::string>()) over.push_back(*one);
    if (const toml::array* list = claim["over"].as_array())
      for (const toml::node& one : *list) over.push_back(one.value_or(std::string()));
    if (quantity.rfind("ratio.", 0) == 0) {
      if (over.empty()) fail(fmt::format("'{}' needs `over`", quantity));
      for (const std::string& other : over)
        append_ratios(claim, quantity, found(s, method), found(s, other), out);
      return;
    }
    const double own = of(s, method, quantity);
    if (over.empty()) out.push_back(own);
    for (const std::string& other : over) out.push_back(own / of(s, other, quantity));
  }

  void append_ratios(const toml::table& claim, const std::string& quantity, const MethodResult& own,
                     const MethodResult& other, std::vector<double>& out) const {
    const auto add = [&](const std::vector<double>& a, const std::vector<double>& b) {
      const Estimate e = ratio_of_means(a, b);
      if (quantity != "ratio.mean" && quantity != "ratio.lo" && quantity != "ratio.hi")
        fail(fmt::format("'{}' is not a quantity", quantity));
      out.push_back(quantity == "ratio.mean" ? e.mean : quantity == "ratio.lo" ? e.lo : e.hi);
    };
    const toml::array* steps = claim["steps"].as_array();
    if (steps == nullptr) return add(own.by_replicate, other.by_replicate);
    if (steps->size() != 2 || own.curves.empty() || other.curves.empty())
      fail("steps is [first, last], of methods that have curves");
    const double first = steps->get(0)->value<double>().value_or(0),
                 last = steps->get(1)->value<double>().value_or(0);
    const Curve &a = own.curves.front(), &b = other.curves.front();
    const std::size_t before = out.size();
    for (std::size_t t = 0; t < a.steps.size() && t < b.steps.size(); ++t) {
      if (a.steps[t] != b.steps[t]) fail("methods whose curves have different steps");
      if (a.steps[t] >= first && a.steps[t] <= last) add(a.by_replicate[t], b.by_replicate[t]);
    }
    if (out.size() == before) out.push_back(kNone);  // the run was shorter: nothing is shown
  }

  const MethodResult& found(const SettingResult& s, const std::string& method) const {
    for (const MethodResult& m : s.methods)
      if (m.name == method) return m;
    fail(fmt::format("no method is called '{}'", method));
  }

  // vs_independent.hi is the upper end of vs_independent's interval.
  double of(const SettingResult& s, const std::string& method, const std::string& quantity) const {
    for (const char* end : {".lo", ".hi"})
      if (quantity.size() > 3 && quantity.compare(quantity.size() - 3, 3, end) == 0) {
        const Estimate e = estimate_of(s, method, quantity.substr(0, quantity.size() - 3));
        return end[1] == 'l' ? e.lo : e.hi;
      }
    return estimate_of(s, method, quantity).mean;
  }

  Estimate estimate_of(const SettingResult& s, const std::string& method,
                       const std::string& quantity) const {
    const auto only = [](double mean) { return Estimate{mean, kNone, kNone, kNone}; };
    const MethodResult& m = found(s, method);
    if (quantity == "mse") return m.mse;
    if (quantity == "median") return only(m.mse.median);
    if (quantity == "vs_independent") return m.vs_independent;
    if (quantity == "central.x") return only(m.central_x);
    if (quantity == "central.theta") return only(m.central_theta);
    if (quantity == "diverged")
      for (const auto& [who, count] : s.diverged)
        if (who == method)
          return only(static_cast<double>(count) / static_cast<double>(s.replicates));
    if (quantity == "agent.worst.vs_independent") {
      double worst = -1;
      for (const AgentResult& each : m.agents) worst = std::max(worst, each.vs_independent.mean);
      return only(worst);
    }
    if (quantity.rfind("agent.", 0) == 0) {
      const auto dot = quantity.find('.', 6);
      const std::string what = dot == std::string::npos ? "" : quantity.substr(dot + 1);
      const AgentResult& a = agent(m, quantity.substr(6, dot - 6));
      if (what == "mse") return a.mse;
      if (what == "vs_independent") return a.vs_independent;
    }
    for (const ErrorResult& e : m.errors) {
      if (quantity == "error." + e.name + ".mse") return e.mse;
      if (quantity == "error." + e.name + ".vs_independent") return e.vs_independent;
    }
    fail(fmt::format("'{}' is not a quantity", quantity));
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
  Json list = Json::array();
  for (const Verdict& v : verdicts)
    list.push_back({{"says", v.says},
                    {"measured", v.measured},
                    {"lo", v.lo},
                    {"hi", v.hi},
                    {"holds", v.holds}});
  return print_json(list, {.indent = 1}) + "\n";
}

}  // namespace affpcl
