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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// The value, exactly rounded, of at most 15 digits with or without a point: what most fields are.
// Digits and power of ten are then both doubles without error, so one division rounds once
// (Clinger 1990). False, and nothing said, about any other text.
bool short_decimal(const char* p, const char* end, char decimal, double& value) {
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
    } else if (*p == decimal && point == nullptr) {
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

// Text with a decimal point, and without groups of digits, as a number.
std::optional<double> decimal_number(std::string_view field) {
  double value = 0;
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

// `field` with a decimal point and without marks between groups of three digits; false where the
// marks do not stand as they should, or a single one could be a decimal mark.
bool without_groups(std::string_view field, char decimal, std::string& plain) {
  const char group = decimal == '.' ? ',' : '.';
  const std::size_t point = std::min(field.find(decimal), field.size());
  const std::string_view whole = field.substr(0, point);
  const auto groups = std::count(whole.begin(), whole.end(), group);
  if (groups == 1 && point == field.size()) return false;
  if (field.find(group, point) != std::string_view::npos) return false;
  std::size_t digits = 0;  // since the last mark
  bool first = true;
  for (char c : whole) {
    if (c == group) {
      if (digits == 0 || digits > 3 || (!first && digits != 3)) return false;
      first = false;
      digits = 0;
    } else {
      digits += is_digit(c) ? 1 : 0;
      plain += c;
    }
  }
  if (groups > 0 && digits != 3) return false;
  if (point < field.size()) plain += '.', plain += field.substr(point + 1);
  return true;
}

// The mark at the front of `text` that may stand between groups of three digits and is no decimal
// mark: a space, also one that does not break, or an apostrophe. Its bytes; 0: none.
std::size_t group_mark(std::string_view text) {
  for (const std::string_view mark : {" ", "'", "\u00a0", "\u202f", "\u2019"})
    if (text.starts_with(mark)) return mark.size();
  return 0;
}

// `field` without such marks: 1 200 000,5 becomes 1200000,5. False where none stands in it, or not as it
// should.
bool without_spaces(std::string_view field, std::string& plain) {
  std::size_t at = field.starts_with('-') ? 1 : 0, digits = 0;
  plain.assign(field.substr(0, at));
  std::string_view mark;
  for (; at < field.size() && digits < 4; ++at) {
    if (const std::size_t size = group_mark(field.substr(at)); size > 0) {
      const std::string_view here = field.substr(at, size);
      if (digits == 0 || (mark.empty() ? digits > 3 : digits != 3 || here != mark)) return false;
      mark = here, digits = 0, at += size - 1;
    } else if (is_digit(field[at])) {
      ++digits, plain += field[at];
    } else {
      break;
    }
  }
  if (mark.empty() || digits != 3) return false;
  plain += field.substr(at);
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

std::optional<double> parse_number(std::string_view field, char decimal) {
  double value = 0;
  if (short_decimal(field.data(), field.data() + field.size(), decimal, value)) return value;
  field = trimmed(field);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  std::string plain, together;
  if (without_spaces(field, together)) field = together;
  if (decimal != '.' || field.find(',') != std::string_view::npos) {
    if (!without_groups(field, decimal, plain)) return {};
    field = plain;
  }
  return decimal_number(field);
}

bool beyond_double(std::string_view field) {
  if (field.size() < 16) return false;
  field = trimmed(field);
  if (!field.empty() && (field[0] == '-' || field[0] == '+')) field.remove_prefix(1);
  if (!std::all_of(field.begin(), field.end(), is_digit)) return false;
  field.remove_prefix(std::min(field.find_first_not_of('0'), field.size()));
  constexpr std::string_view kLargest = "9007199254740992";  // 2^53
  return field.size() > kLargest.size() || (field.size() == kLargest.size() && field > kLargest);
}

MissingWords::MissingWords(std::string_view list) {
  for (std::string& word : names_in(list, "na")) {
    std::transform(word.begin(), word.end(), word.begin(), lower);
    const bool letter = word[0] >= 'a' && word[0] <= 'z';
    first_[static_cast<unsigned char>(word[0])] = true;
    first_[static_cast<unsigned char>(letter ? word[0] - 32 : word[0])] = true;
    holds_numbers_ = holds_numbers_ || parse_number(word).has_value();
    words_.push_back(std::move(word));
  }
}

bool MissingWords::has(std::string_view field) const {
  field = trimmed(field);
  if (field.empty()) return true;
  if (!first_[static_cast<unsigned char>(field[0])]) return false;
  return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
    return std::equal(field.begin(), field.end(), word.begin(), word.end(),
                      [](char a, char b) { return lower(a) == b; });
  });
}

const MissingWords& usual_missing() {
  static const MissingWords usual;
  return usual;
}

bool is_missing(std::string_view field) { return usual_missing().has(field); }

std::string no_number(std::string_view field, char decimal) {
  if (beyond_double(field)) return "is an integer beyond 2^53, which a number here cannot hold";
  const char other = decimal == '.' ? ',' : '.';
  if (parse_number(field, other))
    return fmt::format("is not a number with the decimal mark '{}' (`decimal {}`)", decimal, other);
  if (field.find_first_of("eE") != std::string_view::npos &&
      field.find_first_of("0123456789") == 0 &&
      field.find_first_not_of("0123456789.eE+-") == std::string_view::npos)
    return "is no number that fits into 64 bits";
  return "is not a number";
}

std::string complaint(const std::string& path, std::string_view place, std::string_view column,
                      std::string_view value, std::string_view what) {
  if (value.empty())  // blank, or a word for it
    return fmt::format("{}, {}, column '{}': the value {}", path, place, shown(column), what);
  return fmt::format("{}, {}, column '{}': '{}' {}", path, place, shown(column), shown(value),
                     what);
}

std::vector<std::string> names_in(std::string_view list, std::string_view key) {
  std::vector<std::string> names;
  std::size_t at = 0;
  while (!list.empty() && at <= list.size()) {
    while (at < list.size() && is_space(list[at])) ++at;
    std::string name;
    if (at < list.size() && list[at] == '"') {
      for (++at; at < list.size() && (list[at] != '"' || list.substr(at).starts_with("\"\""));
           ++at) {
        name += list[at];
        if (list[at] == '"') ++at;
      }
      if (at == list.size())
        throw BadInput(fmt::format("{} = {} opens a quote and never closes it", key, list));
      ++at;
      while (at < list.size() && is_space(list[at])) ++at;
      if (at < list.size() && list[at] != ',')
        throw BadInput(
            fmt::format("{} = {} has '{}' behind a closing quote", key, list, list.substr(at)));
    } else {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      name = trimmed(list.substr(at, comma - at));
      at = comma;
    }
    if (name.empty() || std::count(names.begin(), names.end(), name) > 0)
      throw BadInput(fmt::format(
          "{} = \"{}\" {}", key, list,
          name.empty() ? "has a column without a name" : fmt::format("names '{}' twice", name)));
    names.push_back(std::move(name));
    ++at;
  }
  return names;
}

std::string several(std::span<const std::string> sentences) {
  constexpr std::size_t kMost = 10;
  if (sentences.size() == 1) return sentences[0];
  std::string text = fmt::format("{} problems", sentences.size());
  for (std::size_t k = 0; k < std::min(sentences.size(), kMost); ++k) text += "\n  " + sentences[k];
  if (sentences.size() > kMost) text += fmt::format("\n  and {} more", sentences.size() - kMost);
  return text;
}

std::string joined_names(std::span<const std::string> names) {
  std::string list;
  for (const std::string& name : names) {
    if (!list.empty()) list += ',';
    if (name.find_first_of(",\"") == std::string::npos && trimmed(name) == name) {
      list += name;
      continue;
    }
    list += '"';
    for (char c : name) list += c == '"' ? std::string("\"\"") : std::string(1, c);
    list += '"';
  }
  return list;
}

std::string lacks_column(const std::string& path, std::string_view name,
                         std::span<const std::string> names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool list = names.size() <= 20 || !did_you_mean(name, candidates).empty();
  const auto values = std::count_if(
      names.begin(), names.end(), [](const std::string& n) { return parse_number(n).has_value(); });
  const bool nameless = 2 * values > static_cast<std::ptrdiff_t>(names.size());
  return fmt::format("{} has no column '{}'{}{}", path, shown(name),
                     nameless ? "; its first line holds values, and has to name the columns" : "",
                     list ? hint(name, candidates)
                          : fmt::format("; its {} columns begin with {}, {}", names.size(),
                                        shown(names[0]), shown(names[1])));
}

}  // namespace affpcl
