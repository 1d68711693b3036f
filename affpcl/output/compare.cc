#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "affpcl/base/error.h"
#include "affpcl/math/statistics.h"
#include "affpcl/output/fit_headline.h"
#include "affpcl/output/result_folder-inl.h"

namespace affpcl {
namespace {

constexpr std::size_t kMostPairs = 3000;  // agents of two fits on a page

using Numbers = std::vector<double>;

double variance_of_mean(const Numbers& v) {
  const double m = mean(v), n = static_cast<double>(v.size());
  double sum = 0;
  for (double x : v) sum += (x - m) * (x - m);
  return sum / (n * (n - 1));
}

// mean(a) / mean(b) of samples that have nothing to do with each other.
Estimate ratio_of_strangers(const Numbers& a, const Numbers& b) {
  const double r = mean(a) / mean(b), none = std::numeric_limits<double>::quiet_NaN();
  const std::size_t least = std::min(a.size(), b.size());
  if (least < 2) return {r, none, none, r};
  const double relative =
      variance_of_mean(a) / (mean(a) * mean(a)) + variance_of_mean(b) / (mean(b) * mean(b));
  const double half = student_quantile((1 + kConfidence) / 2, static_cast<double>(least - 1)) * r *
                      std::sqrt(relative);
  return {r, r - half, r + half, r};
}

Json to_json(const Estimate& e) { return {{"mean", e.mean}, {"lo", e.lo}, {"hi", e.hi}}; }

// The errors of a method by the replicate's number.
std::map<std::int64_t, double> by_number(const Json& setting, const Json& method) {
  std::map<std::int64_t, double> out;
  if (!setting.contains("numbers") || !method.contains("by_replicate")) return out;
  const Json &numbers = setting["numbers"], &errors = method["by_replicate"];
  for (std::size_t i = 0; i < std::min(numbers.size(), errors.size()); ++i)
    if (errors[i].is_number() && numbers[i].is_integer())
      out[numbers[i].get<std::int64_t>()] = errors[i].get<double>();
  return out;
}

struct Pair {
  Estimate ratio;  // the error after over the error before
  std::size_t replicates = 0;
  bool paired = false;
};

Pair compare_methods(const std::map<std::int64_t, double>& before,
                     const std::map<std::int64_t, double>& after, bool same_seed) {
  Numbers a, b;
  if (same_seed)
    for (const auto& [number, error] : before)
      if (const auto other = after.find(number); other != after.end())
        a.push_back(error), b.push_back(other->second);
  if (a.size() > 1) return {ratio_of_means(b, a), a.size(), true};
  a.clear(), b.clear();
  for (const auto& [number, error] : before) a.push_back(error);
  for (const auto& [number, error] : after) b.push_back(error);
  return {ratio_of_strangers(b, a), std::min(a.size(), b.size()), false};
}

const Json* named(const Json& list, const Json& name) {
  for (const Json& one : list.elements())
    if (one["name"] == name) return &one;
  return nullptr;
}

// The method that the first result's headline is about.
Json subject_of(const Json& settings) {
  for (const Json& s : settings.elements())
    if (const Json* headline = s.find("headline"))
      return headline->contains("method") ? headline->at("method") : Json();
  return nullptr;
}

Json compare_studies(const Json& before, const Json& after) {
  const bool same_seed = before["manifest"]["seed"] == after["manifest"]["seed"];
  const Json &A = before["settings"], &B = after["settings"];
  Json pairs = Json::array();
  const Json subject = subject_of(A);
  std::vector<Estimate> ratios;  // of the subject
  std::size_t smaller = 0, larger = 0;
  bool all_paired = true;
  for (std::size_t i = 0; i < A.size(); ++i)
    for (std::size_t j = 0; j < B.size(); ++j) {
      // Two results of one setting each compare, wherever they are.
      if (A[i]["at"] != B[j]["at"] && (A.size() > 1 || B.size() > 1)) continue;
      for (const Json& m : A[i]["methods"].elements()) {
        const Json* other = named(B[j]["methods"], m["name"]);
        if (other == nullptr) continue;
        const auto errors = by_number(A[i], m), others = by_number(B[j], *other);
        if (errors.empty() || others.empty()) continue;
        const Pair p = compare_methods(errors, others, same_seed);
        all_paired &= p.paired;
        smaller += p.ratio.hi < 1;
        larger += p.ratio.lo > 1;
        if (m["name"] == subject) ratios.push_back(p.ratio);
        pairs.push_back({{"before", i},
                         {"after", j},
                         {"method", m["name"]},
                         {"ratio", to_json(p.ratio)},
                         {"replicates", p.replicates},
                         {"paired", p.paired}});
      }
    }
  if (pairs.empty())
    throw BadInput("the two results do not compare: no method has errors at a setting of both");
  std::string headline =
      fmt::format("{} of {} errors are measurably smaller in the second result, {} larger", smaller,
                  pairs.size(), larger);
  const auto [least, most] =
      std::minmax_element(ratios.begin(), ratios.end(),
                          [](const Estimate& a, const Estimate& b) { return a.mean < b.mean; });
  if (!ratios.empty()) {
    headline += fmt::format("; {} has {}", subject.get<std::string>(), with_interval(*least));
    if (least != most) headline += fmt::format(" to {}", with_interval(*most));
    headline += " of its error in the first";
  }
  headline += all_paired ? " (paired, replicate by replicate)" : " (not paired)";
  return {{"headline", headline}, {"pairs", std::move(pairs)}};
}

// Agents of the same name are pairs; the interval is over agents, each weighted by its rows.
Json compare_fits(const Json& before, const Json& after) {
  std::map<std::string, const Json*> others;
  for (const Json& a : after["agents"].elements()) others[a["agent"].get<std::string>()] = &a;
  Json pairs = Json::array();
  Numbers a, b;
  for (const Json& one : before["agents"].elements()) {
    const auto other = others.find(one["agent"].get<std::string>());
    if (other == others.end() || !one["score"].is_object() ||
        !(*other->second)["score"].is_object())
      continue;
    const Json &x = one["score"]["given"], &y = (*other->second)["score"]["given"];
    if (!x.is_number() || !y.is_number()) continue;
    const double rows = one["rows"].get<double>();
    a.push_back(rows * x.get<double>());
    b.push_back(rows * y.get<double>());
    pairs.push_back({{"agent", one["agent"]}, {"before", x}, {"after", y}, {"rows", one["rows"]}});
  }
  if (pairs.empty()) throw BadInput("the two fits do not compare: no agent has a score in both");
  const Estimate ratio = ratio_of_means(b, a);
  std::size_t smaller = 0;
  for (std::size_t i = 0; i < a.size(); ++i) smaller += b[i] < a[i];
  Json shown = Json::array();  // evenly spread; the headline is of all
  for (std::size_t k = 0, n = std::min(pairs.size(), kMostPairs); k < n; ++k)
    shown.push_back(pairs[k * pairs.size() / n]);
  return {{"headline",
           fmt::format("the second fit has {} of the first one's error on rows it had not learnt "
                       "from; it is smaller for {} of {} agents",
                       with_interval(ratio), smaller, a.size())},
          {"ratio", to_json(ratio)},
          {"all", pairs.size()},
          {"pairs", std::move(shown)}};
}

}  // namespace

Json compare(const ResultFiles& before, const ResultFiles& after) {
  for (const ResultFiles* one : {&before, &after})
    if (one->piloted())
      throw BadInput(fmt::format("{} is of affinity, which has no comparison of two", one->folder));
  if (before.fitted() != after.fitted())
    throw BadInput(fmt::format("{} and {} do not compare: one is a fit, the other is not",
                               before.folder, after.folder));
  return before.fitted() ? compare_fits(before.summary, after.summary)
                         : compare_studies(before.summary, after.summary);
}

}  // namespace affpcl
