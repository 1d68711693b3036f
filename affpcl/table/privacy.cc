#include "affpcl/table/privacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <set>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/math/gaussian_mechanism.h"
#include "affpcl/random/discrete_gaussian.h"

namespace affpcl {
namespace {

constexpr double kLeastEpsilon = 0.01, kMostEpsilon = 20, kLeastDelta = 1e-15, kMostDelta = 1e-3;
constexpr double kOfDelta = 0.999;  // the rest is for what tells discrete noise from continuous

[[noreturn]] void refuse_bound(const std::string& entry) {
  throw BadInput({.option = "bounds",
                  .what = fmt::format("has '{}'", entry),
                  .remedy = "an entry is column=low:high, as age=0:100, or column=level|level"});
}

Bound parse_bound(const std::string& entry) {
  const std::size_t equals = entry.rfind('=');
  if (equals == std::string::npos || equals == 0) refuse_bound(entry);
  Bound bound{.column = entry.substr(0, equals)};
  const std::string of = entry.substr(equals + 1);
  const std::size_t colon = of.find(':');
  const auto low = parse_number(of.substr(0, colon)),
             high = colon == std::string::npos ? std::nullopt : parse_number(of.substr(colon + 1));
  if (low && high) {
    if (!(*low < *high) || !std::isfinite(*high - *low)) refuse_bound(entry);
    bound.low = *low, bound.high = *high;
    return bound;
  }
  for (std::size_t from = 0; from <= of.size();) {
    const std::size_t to = std::min(of.find('|', from), of.size());
    bound.levels.push_back(of.substr(from, to - from));
    from = to + 1;
  }
  const std::set<std::string> different(bound.levels.begin(), bound.levels.end());
  if (bound.levels.size() < 2 || different.size() < bound.levels.size() || different.contains(""))
    refuse_bound(entry);
  return bound;
}

double number_of(const std::string& part, const char* key, double least, double most) {
  const std::optional<double> value = parse_number(part);
  if (!value || !(*value >= least) || !(*value <= most))
    throw BadInput({.option = "privacy",
                    .what = fmt::format("has {} = '{}'", key, part),
                    .remedy = fmt::format("a number from {:g} to {:g}", least, most)});
  return *value;
}

void take_terms(std::string_view text, PrivacyTerms& terms) {
  std::optional<double> epsilon, delta;
  for (const std::string& part : names_in(text, "privacy")) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals),
                      value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (key == "epsilon" && !epsilon) {
      epsilon = number_of(value, "epsilon", kLeastEpsilon, kMostEpsilon);
    } else if (key == "delta" && !delta) {
      delta = number_of(value, "delta", kLeastDelta, kMostDelta);
    } else {
      throw BadInput({.option = "privacy",
                      .what = fmt::format("has '{}'", part),
                      .remedy = "it is epsilon=4,delta=1e-5"});
    }
  }
  if (!epsilon || !delta)
    throw BadInput({.option = "privacy",
                    .what = fmt::format("lacks {}", epsilon ? "delta" : "epsilon"),
                    .remedy = "it is epsilon=4,delta=1e-5, delta well below 1 / number of rows"});
  terms.epsilon = *epsilon, terms.delta = *delta;
}

}  // namespace

std::vector<Bound> parse_bounds(const std::string& text) {
  std::vector<std::string> entries;
  if (text.find('=') == std::string::npos) {
    std::ifstream in(text);
    if (!in)
      throw BadInput(
          fmt::format("`bounds` is neither a list such as y=0:100,x=-3:3 nor a file: {}", text));
    for (std::string line; std::getline(in, line);) {
      const std::string entry(trimmed(line));
      if (!entry.empty() && entry[0] != '#') entries.push_back(entry);
    }
  } else {
    entries = names_in(text, "bounds");
  }
  std::vector<Bound> bounds;
  for (const std::string& entry : entries) {
    bounds.push_back(parse_bound(entry));
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k)
      if (bounds[k].column == bounds.back().column)
        throw BadInput(fmt::format("`bounds` names the column '{}' twice", bounds[k].column));
  }
  return bounds;
}

PrivacyTerms PrivacyTerms::parse(std::string_view privacy, const std::string& bounds) {
  PrivacyTerms terms;
  take_terms(privacy, terms);
  if (bounds.empty())
    throw BadInput(
        "`privacy` needs `bounds`: what the target and every column are known to lie in, as "
        "y=0:100,x=-3:3,kind=a|b; bounds taken from the rows would say something of them");
  terms.bounds = parse_bounds(bounds);
  // z has a 1, every number in [-1, 1] and of every column of texts at most one 1; so what a row adds
  // to the sums of z_j z_k, j <= k, has squares that sum to (M^2 + M) / 2 at most.
  const double M = 1 + static_cast<double>(terms.bounds.size());
  terms.sensitivity = std::sqrt(M * (M + 1) / 2);
  terms.multiplier = gaussian_multiplier(terms.epsilon, kOfDelta * terms.delta);
  const double sigma = std::ceil(terms.multiplier * terms.sensitivity / (kUnit * kUnit));
  if (sigma > static_cast<double>(kMostSigma))
    throw BadInput(
        fmt::format("`privacy` asks for noise of {:.3g} on every moment, which drowns any rows",
                    sigma * kUnit * kUnit));
  terms.sigma = static_cast<std::int64_t>(sigma);
  return terms;
}

double PrivacyTerms::noise() const { return static_cast<double>(sigma) * kUnit * kUnit; }

const Bound* PrivacyTerms::find(std::string_view column) const {
  for (const Bound& b : bounds)
    if (b.column == column) return &b;
  return nullptr;
}

KnownColumns PrivacyTerms::columns(const FrameOptions& o) const {
  KnownColumns known;
  known.by = "`bounds`";
  known.agents = std::numeric_limits<std::size_t>::max();  // of no centre
  Encoding& e = known.encoding;
  e.target = o.target;
  e.missing = o.missing.rest;
  for (const Bound& b : bounds) {
    const double middle = (b.low + b.high) / 2, half = (b.high - b.low) / 2;
    if (b.column == o.target) {
      if (!b.levels.empty())
        throw BadInput(fmt::format(
            "`privacy` is for targets that are numbers, and `bounds` has levels of '{}'",
            b.column));
      known.y_mean = {middle}, known.y_sd = {half};
      continue;
    }
    Source source{.name = b.column,
                  .levels = b.levels,
                  .mean = {middle},
                  .sd = {half},
                  .missing = o.missing.at(b.column)};
    if (!b.levels.empty())
      source.mean.assign(b.levels.size() - 1, 0.0), source.sd.assign(b.levels.size() - 1, 1.0);
    e.sources.push_back(std::move(source));
  }
  if (known.y_mean.empty()) throw BadInput(fmt::format("`bounds` lacks the target '{}'", o.target));
  return known;
}

}  // namespace affpcl
