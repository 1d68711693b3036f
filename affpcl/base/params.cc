#include "affpcl/base/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"

namespace affpcl {
namespace {

const char* type_name(const Value& v) {
  static constexpr const char* kNames[] = {"true or false", "a whole number", "a number", "a text",
                                           "a list of numbers"};
  return kNames[v.index()];
}

std::size_t edit_distance(std::string_view a, std::string_view b) {  // with swaps of neighbours
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string range_text(const Param& p) {
  const Allowed& a = p.allowed;
  const bool lo = std::isfinite(a.lo), hi = std::isfinite(a.hi);
  const char* from = a.above ? "above" : "at least";
  if (lo && hi) return fmt::format("{} {:.17g} and at most {:.17g}", from, a.lo, a.hi);
  if (lo) return fmt::format("{} {:.17g}", from, a.lo);
  if (hi) return fmt::format("at most {:.17g}", a.hi);
  return "finite";
}

void check_number(const Param& p, double x, const Value& given, std::string_view where) {
  const Allowed& a = p.allowed;
  if (a.whole && !(x == std::floor(x) && std::abs(x) <= 0x1p53))
    throw BadInput(fmt::format("{}.{} = {} is not allowed: {} is not a whole number", where, p.name,
                               to_text(given), x));
  const bool ok = std::isfinite(x) && (a.above ? x > a.lo : x >= a.lo) && x <= a.hi;
  if (!ok)
    throw BadInput(fmt::format("{}.{} = {} is not allowed: it must be {}", where, p.name,
                               to_text(given), range_text(p)));
}

Value checked(const Param& p, const Value& given, std::string_view where) {
  Value v = given;
  if (std::holds_alternative<double>(p.fallback) && std::holds_alternative<std::int64_t>(given))
    v = static_cast<double>(std::get<std::int64_t>(given));  // 1 is a fine way to write 1.0
  if (v.index() != p.fallback.index())
    throw BadInput(fmt::format("{}.{} = {} is not allowed: it must be {}", where, p.name,
                               to_text(given), type_name(p.fallback)));
  if (const auto* x = std::get_if<double>(&v)) check_number(p, *x, given, where);
  if (const auto* x = std::get_if<std::int64_t>(&v))
    check_number(p, static_cast<double>(*x), given, where);
  if (const auto* xs = std::get_if<std::vector<double>>(&v))
    for (double x : *xs) check_number(p, x, given, where);
  if (const auto* s = std::get_if<std::string>(&v))
    if (!p.choices.empty() && std::find(p.choices.begin(), p.choices.end(), *s) == p.choices.end())
      throw BadInput(fmt::format("{}.{} = {} is not known{}", where, p.name, to_text(given),
                                 hint(*s, p.choices)));
  return v;
}

}  // namespace

std::string to_text(const Value& value) {
  struct Writer {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return fmt::format("{}", i); }
    std::string operator()(double x) const { return fmt::format("{}", x); }
    std::string operator()(const std::string& s) const { return fmt::format("\"{}\"", s); }
    std::string operator()(const std::vector<double>& v) const {
      std::string list;
      for (double x : v) list += fmt::format("{}{}", list.empty() ? "" : ", ", x);
      return "[" + list + "]";
    }
  };
  return std::visit(Writer{}, value);
}

Values::Values(std::span<const Param> params, const std::map<std::string, Value>& given,
               std::string_view where) {
  std::vector<std::string_view> names;
  for (const Param& p : params) names.push_back(p.name);
  for (const auto& [name, value] : given)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw BadInput(fmt::format("{}.{} is not a known key{}", where, name, hint(name, names)));
  for (const Param& p : params) {
    const auto it = given.find(std::string(p.name));
    values_.emplace(p.name, it == given.end() ? p.fallback : checked(p, it->second, where));
  }
}

template <class T>
const T& Values::get(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end())
    throw std::logic_error(fmt::format("parameter '{}' is not in its table", name));
  return std::get<T>(it->second);
}
template const bool& Values::get<bool>(std::string_view) const;
template const std::int64_t& Values::get<std::int64_t>(std::string_view) const;
template const double& Values::get<double>(std::string_view) const;
template const std::string& Values::get<std::string>(std::string_view) const;
template const std::vector<double>& Values::get<std::vector<double>>(std::string_view) const;

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (std::string_view c : candidates) {
    const std::size_t d = edit_distance(word, c);
    if (d < best) best = d, nearest = c;
  }
  return nearest;
}

std::string hint(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string nearest = did_you_mean(word, candidates);
  if (!nearest.empty()) return fmt::format("; did you mean '{}'?", nearest);
  return candidates.empty() ? "" : "; allowed: " + join(candidates, ", ");
}

namespace internal {

void refuse_name(std::string_view name, std::string_view what,
                 std::span<const std::string_view> allowed) {
  throw BadInput(fmt::format("{} = \"{}\" is not known{}", what, name, hint(name, allowed)));
}

}  // namespace internal

}  // namespace affpcl
