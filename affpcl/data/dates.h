// Dates as people write them, as days since 1970-01-01.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "affpcl/base/params.h"

namespace affpcl {

// 2026-11-18 or 2026/11/18; 18.11.2026 or 18/11/2026; 11/18/2026. A time of day may follow each.
enum class DateOrder { kNone, kYearFirst, kDayFirst, kMonthFirst };

template <>
struct EnumNames<DateOrder> {
  static constexpr std::array<std::string_view, 4> all = {"", "ymd", "dmy", "mdy"};
};

// Days with their fraction; none where the text is no date of that order. Zones are ignored: what
// a clock on the wall showed is what counts.
std::optional<double> parse_date(std::string_view text, DateOrder order);

// The order in which all texts are dates; kNone where there is none.
struct DatesFound {
  DateOrder order = DateOrder::kNone;
  bool ambiguous = false;  // day first and month first both fit
};
DatesFound find_dates(std::span<const std::string> texts);

}  // namespace affpcl
