// A parameter is described once, in a Params<Config>: its name, the member that holds it (whose
// initialiser is the default), one line of documentation and what is allowed. The spec reader,
// `affpcl list`, the command line and the Python package are made from these tables.
//
//   const Params<Ditto::Config>& Ditto::params() {
//     static const Params<Config> kParams = {
//         {"lambda", &Config::lambda, "strength of the pull", between(0, 1e9)},
//     };
//     return kParams;
//   }
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace affpcl {

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

// `value` as a person would write it in a spec: 0.3, "exact", [0, -1].
std::string to_text(const Value& value);

// What a parameter may be.
struct Allowed {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();  // numbers must lie in [lo, hi]
  bool above = false;                                   // the number must lie above lo, not at it
  bool path = false;   // the text is a file; a spec's folder is its base
  bool whole = false;  // a list holds whole numbers only
};
constexpr Allowed at_least(double lo) { return {.lo = lo}; }
constexpr Allowed between(double lo, double hi) { return {.lo = lo, .hi = hi}; }
constexpr Allowed above(double lo, double hi = std::numeric_limits<double>::infinity()) {
  return {.lo = lo, .hi = hi, .above = true};
}
inline constexpr Allowed kPath{.path = true};

struct Param {
  std::string_view name;
  std::string_view doc;  // one line, for people
  Value fallback;        // the default; its type is the parameter's type
  Allowed allowed = {};
  std::vector<std::string_view> choices = {};  // texts must be one of these, if any are given
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

// The names of an enum in specs, options and results: EnumNames<Enum>::all, in the order of the
// values, which count from 0. Specialised beside the enum, so that its names stand in one place.
template <class Enum>
struct EnumNames;

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return EnumNames<Enum>::all[static_cast<std::size_t>(value)];
}
// BadInput lists what is allowed; `what` is the parameter.
template <class Enum>
Enum value_of(std::string_view name, std::string_view what);

// The parameters of a Config: described, read and written.
template <class Config>
class Params {
 public:
  struct Entry {
    template <class T>
    Entry(std::string_view name, T Config::*member, std::string_view doc, Allowed allowed = {});
    // A flag whose two values have names: {"figure", "published"} are false and true.
    Entry(std::string_view name, bool Config::*member, std::array<std::string_view, 2> names,
          std::string_view doc);

    Param param;
    std::function<Value(const Config&)> get;
    std::function<void(Config&, const Value&)> set;

   private:
    template <class>
    friend class Params;
    Entry() = default;
  };

  Params() = default;
  Params(std::initializer_list<Entry> entries) { add(entries); }
  Params& add(std::initializer_list<Entry> entries);
  // The parameters of a member that has its own Config, but those named in `without`.
  template <class Part>
  Params& add(Part Config::*part, const Params<Part>& params,
              std::initializer_list<std::string_view> without = {});

  // The parameters of a view on the Config: of(config) is the view, put(view, config) writes it
  // back.
  template <class View>
  Params& add(const Params<View>& params, View (*of)(const Config&),
              void (*put)(const View&, Config&));

  const std::vector<Param>& table() const { return table_; }
  // `values` may hold more than these.
  Config read(const Values& values) const;
  void read(const Values& values, Config& config) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::vector<Param> table_;
};

// The candidate nearest to `word` if it is near enough to be a slip of the finger, otherwise empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'seed'?" or "; allowed: a, b, c".
std::string hint(std::string_view word, std::span<const std::string_view> candidates);

// --- what follows are the bodies of the templates above

namespace internal {

[[noreturn]] void refuse_name(std::string_view name, std::string_view what,
                              std::span<const std::string_view> allowed);

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

template <class T>
Value to_value(const T& x) {
  if constexpr (std::is_enum_v<T>)
    return std::string(name_of(x));
  else if constexpr (WholeNumber<T>)
    return static_cast<std::int64_t>(x);
  else if constexpr (std::same_as<T, std::vector<std::int64_t>>)
    return std::vector<double>(x.begin(), x.end());
  else
    return x;
}

// `value` is checked: it has the parameter's type and lies in its range.
template <class T>
void from_value(const Value& value, std::string_view name, T& x) {
  if constexpr (std::is_enum_v<T>)
    x = value_of<T>(std::get<std::string>(value), name);
  else if constexpr (WholeNumber<T>)
    x = static_cast<T>(std::get<std::int64_t>(value));
  else if constexpr (std::same_as<T, std::vector<std::int64_t>>) {
    x.clear();
    for (double v : std::get<std::vector<double>>(value)) x.push_back(static_cast<std::int64_t>(v));
  } else
    x = std::get<T>(value);
}

}  // namespace internal

template <class Enum>
Enum value_of(std::string_view name, std::string_view what) {
  std::size_t k = 0;
  for (std::string_view known : EnumNames<Enum>::all) {
    if (known == name) return static_cast<Enum>(k);
    ++k;
  }
  internal::refuse_name(name, what, EnumNames<Enum>::all);
}

template <class Config>
template <class T>
Params<Config>::Entry::Entry(std::string_view name, T Config::*member, std::string_view doc,
                             Allowed allowed)
    : param{name, doc, internal::to_value(Config{}.*member), allowed} {
  if constexpr (std::is_enum_v<T>)
    param.choices.assign(std::begin(EnumNames<T>::all), std::end(EnumNames<T>::all));
  if constexpr (internal::WholeNumber<T> && sizeof(T) < sizeof(std::int64_t))
    param.allowed.hi =
        std::min(allowed.hi, static_cast<double>(std::numeric_limits<T>::max()));  // no overflow
  if constexpr (std::same_as<T, std::vector<std::int64_t>>) param.allowed.whole = true;
  get = [member](const Config& config) { return internal::to_value(config.*member); };
  set = [member, name](Config& config, const Value& value) {
    internal::from_value(value, name, config.*member);
  };
}

template <class Config>
Params<Config>::Entry::Entry(std::string_view name, bool Config::*member,
                             std::array<std::string_view, 2> names, std::string_view doc)
    : param{name, doc, std::string(names[Config{}.*member ? 1 : 0])} {
  param.choices.assign(names.begin(), names.end());
  get = [member, names](const Config& config) {
    return std::string(names[config.*member ? 1 : 0]);
  };
  set = [member, on = names[1]](Config& config, const Value& value) {
    config.*member = std::get<std::string>(value) == on;
  };
}

template <class Config>
Params<Config>& Params<Config>::add(std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) entries_.push_back(e), table_.push_back(e.param);
  return *this;
}

template <class Config>
template <class Part>
Params<Config>& Params<Config>::add(Part Config::*part, const Params<Part>& params,
                                    std::initializer_list<std::string_view> without) {
  for (const typename Params<Part>::Entry& of_part : params.entries()) {
    if (std::find(without.begin(), without.end(), of_part.param.name) != without.end()) continue;
    Entry e;
    e.param = of_part.param;
    e.param.fallback = of_part.get(Config{}.*part);
    e.get = [part, get = of_part.get](const Config& config) { return get(config.*part); };
    e.set = [part, set = of_part.set](Config& config, const Value& value) {
      set(config.*part, value);
    };
    entries_.push_back(e), table_.push_back(e.param);
  }
  return *this;
}

template <class Config>
template <class View>
Params<Config>& Params<Config>::add(const Params<View>& params, View (*of)(const Config&),
                                    void (*put)(const View&, Config&)) {
  for (const typename Params<View>::Entry& of_view : params.entries()) {
    Entry e;
    e.param = of_view.param;
    e.param.fallback = of_view.get(of(Config{}));
    e.get = [of, get = of_view.get](const Config& config) { return get(of(config)); };
    e.set = [of, put, set = of_view.set](Config& config, const Value& value) {
      View view = of(config);
      set(view, value);
      put(view, config);
    };
    entries_.push_back(e), table_.push_back(e.param);
  }
  return *this;
}

template <class Config>
Config Params<Config>::read(const Values& values) const {
  Config config;
  read(values, config);
  return config;
}

template <class Config>
void Params<Config>::read(const Values& values, Config& config) const {
  for (const Entry& e : entries_) e.set(config, values.all().find(e.param.name)->second);
}

}  // namespace affpcl
