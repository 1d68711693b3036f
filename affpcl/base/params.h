// A parameter is described once: name, doc, default, range. The spec reader, `affpcl list` and the
// bindings are made from these tables; nothing else repeats a default.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace affpcl {

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

// `value` as a person would write it in a spec: 0.3, "exact", [0, -1].
std::string to_text(const Value& value);

struct Param {
  std::string_view name;
  std::string_view doc;  // one line, for people
  Value fallback;        // the default; its type is the parameter's type
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();  // numbers must lie in [lo, hi]
  std::vector<std::string_view> choices = {};  // texts must be one of these, if any are given
  bool above = false;                          // the number must lie above lo, not at it
  bool path = false;                           // the text is a file; a spec's folder is its base
};

// Checked values of a table of parameters: every name is present, of its declared type and in
// range.
class Values {
 public:
  Values() = default;
  // Fills in the defaults and checks `given`. `where` starts every complaint ("spec.toml:
  // problem").
  Values(std::span<const Param> params, const std::map<std::string, Value>& given,
         std::string_view where);

  bool flag(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double number(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<double>& list(std::string_view name) const {
    return get<std::vector<double>>(name);
  }
  const std::map<std::string, Value, std::less<>>& all() const { return values_; }

 private:
  template <class T>
  const T& get(std::string_view name) const;
  std::map<std::string, Value, std::less<>> values_;
};

// The candidate nearest to `word` if it is near enough to be a slip of the finger, otherwise empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'seed'?" or "; allowed: a, b, c".
std::string hint(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace affpcl
