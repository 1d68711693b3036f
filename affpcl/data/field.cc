#include "affpcl/data/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"

namespace affpcl {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }

// The value, exactly rounded, of at most 15 digits with or without a point: what most fields are.
// Digits and power of ten are then both doubles without error, so one division rounds once
// (Clinger 1990). False, and nothing said, about any other text.
bool short_decimal(const char* p, const char* end, double& value) {
  static constexpr double kTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = p != end && *p == '-';
  p += negative;
  if (end - p > 16 || p == end) return false;
  std::uint64_t digits = 0;
  const char* point = nullptr;
  const char* const first = p;
  for (; p != end; ++p) {
    const auto digit = static_cast<unsigned char>(*p - '0');
    if (digit < 10) {
      digits = digits * 10 + digit;
    } else if (*p == '.' && point == nullptr) {
      point = p;
    } else {
      return false;
    }
  }
  const auto count = (end - first) - (point != nullptr);
  if (count == 0 || count > 15) return false;
  const double v = point == nullptr ? static_cast<double>(digits)
                                    : static_cast<double>(digits) / kTen[end - point - 1];
  value = negative ? -v : v;
  return true;
}

}  // namespace

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return field;
}

std::string shown(std::string_view value) {
  std::size_t size = std::min<std::size_t>(value.size(), 40);
  while (size > 0 && size < value.size() && (value[size] & 0xC0) == 0x80) --size;  // whole letters
  std::string s(value.substr(0, size));
  for (char& c : s)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return size < value.size() ? s + "…" : s;
}

std::optional<double> parse_number(std::string_view field) {
  double value = 0;
  if (short_decimal(field.data(), field.data() + field.size(), value)) return value;
  field = trimmed(field);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) {  // too large is no number, too small is zero
    const std::size_t e = field.find_first_of("eE");
    const bool small = e != std::string_view::npos
                           ? field.substr(e).starts_with("e-") || field.substr(e).starts_with("E-")
                           : field.find('.') != std::string_view::npos;
    if (!small) return {};
    return 0.0;
  }
  if (!std::isfinite(value)) return {};
  return value;
}

bool is_missing(std::string_view field) {
  field = trimmed(field);
  const auto is = [&](std::string_view word) {
    return std::equal(field.begin(), field.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
  };
  return field.empty() || field == "?" || is("na") || is("nan");
}

std::string complaint(const std::string& path, std::string_view place, std::string_view column,
                      std::string_view value, std::string_view what) {
  return fmt::format("{}, {}, column '{}': '{}' {}", path, place, shown(column), shown(value),
                     what);
}

std::vector<std::string> names_in(std::string_view list, std::string_view key) {
  std::vector<std::string> names;
  std::size_t from = 0;
  while (!list.empty() && from <= list.size()) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    std::string name(trimmed(list.substr(from, comma - from)));
    if (name.empty() || std::count(names.begin(), names.end(), name) > 0)
      throw BadInput(fmt::format(
          "{} = \"{}\" {}", key, list,
          name.empty() ? "has a column without a name" : fmt::format("names '{}' twice", name)));
    names.push_back(std::move(name));
    from = comma + 1;
  }
  return names;
}

std::string lacks_column(const std::string& path, std::string_view name,
                         std::span<const std::string> names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool list = names.size() <= 20 || !did_you_mean(name, candidates).empty();
  return fmt::format("{} has no column '{}'{}", path, shown(name),
                     list ? hint(name, candidates)
                          : fmt::format("; its {} columns begin with {}, {}", names.size(),
                                        shown(names[0]), shown(names[1])));
}

}  // namespace affpcl
