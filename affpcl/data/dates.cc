#include "affpcl/data/dates.h"

#include <algorithm>
#include <chrono>

#include "affpcl/data/field.h"

namespace affpcl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes `least` to `most` digits from the front; -1: there are others.
int take_digits(std::string_view& text, std::size_t least, std::size_t most) {
  int value = 0;
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) {
    if (++count > most) return -1;
    value = 10 * value + (text[count - 1] - '0');
  }
  if (count < least) return -1;
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// " 17:05:30.25+01:00" or nothing, as a share of the day.
std::optional<double> time_of_day(std::string_view text) {
  if (text.empty()) return 0.0;
  if (!take(text, "T ")) return {};
  const int hours = take_digits(text, 1, 2);
  if (hours < 0 || hours > 23 || !take(text, ":")) return {};
  const int minutes = take_digits(text, 2, 2);
  if (minutes < 0 || minutes > 59) return {};
  double seconds = 0;
  if (take(text, ":")) {
    const int whole = take_digits(text, 2, 2);
    if (whole < 0 || whole > 60) return {};
    seconds = whole;
    if (take(text, ".,"))
      for (double unit = 0.1; !text.empty() && is_digit(text[0]); unit /= 10, text.remove_prefix(1))
        seconds += unit * (text[0] - '0');
  }
  if (!take(text, "Z") && take(text, "+-")) {
    if (take_digits(text, 2, 4) < 0) return {};
    if (take(text, ":") && take_digits(text, 2, 2) < 0) return {};
  }
  if (!text.empty()) return {};
  return (hours * 60 + minutes) / 1440. + seconds / 86400;
}

}  // namespace

std::optional<double> parse_date(std::string_view text, DateOrder order) {
  text = trimmed(text);
  const bool year_first = order == DateOrder::kYearFirst;
  const int a = year_first ? take_digits(text, 4, 4) : take_digits(text, 1, 2);
  if (a < 0 || text.empty()) return {};
  const char mark = text[0];
  if (!take(text, order == DateOrder::kDayFirst ? "./-" : "/-")) return {};
  const int b = take_digits(text, 1, 2);
  if (b < 0 || !take(text, std::string_view(&mark, 1))) return {};
  const int c = year_first ? take_digits(text, 1, 2) : take_digits(text, 4, 4);
  if (c < 0) return {};
  const int year = year_first ? a : c;
  const int month = order == DateOrder::kMonthFirst ? a : b;
  const int day = year_first ? c : order == DateOrder::kMonthFirst ? b : a;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return {};
  const std::optional<double> time = time_of_day(text);
  if (!time) return {};
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) + *time;
}

DatesFound find_dates(std::span<const std::string> texts) {
  if (texts.empty()) return {};
  const auto all = [&](DateOrder order) {
    return std::all_of(texts.begin(), texts.end(),
                       [&](const std::string& t) { return parse_date(t, order).has_value(); });
  };
  if (all(DateOrder::kYearFirst)) return {.order = DateOrder::kYearFirst};
  const bool day = all(DateOrder::kDayFirst), month = all(DateOrder::kMonthFirst);
  return {.order = day     ? DateOrder::kDayFirst
                   : month ? DateOrder::kMonthFirst
                           : DateOrder::kNone,
          .ambiguous = day && month};
}

}  // namespace affpcl
