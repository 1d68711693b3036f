// What the files that turn columns into numbers share: names in options, blanks, texts, and lists for sentences.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/tables.h"
#include "affpcl/table/encode.h"

namespace affpcl::columns {

inline bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// What is predicted, by the names in the options.
inline std::vector<std::string> outcomes(const FrameOptions& o) {
  return o.channels.empty() ? std::vector{o.target} : o.channels;
}

inline bool is_text(const Column& c) { return c.type == Column::Type::kText; }

inline bool is_blank(const Column& c, std::size_t row) {
  return is_text(c) ? c.codes[row] < 0 : std::isnan(c.numbers[row]);
}

inline const std::string& text(const Column& c, std::size_t row) {
  return c.levels[static_cast<std::size_t>(c.codes[row])];
}

inline std::string plural(std::size_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::vector<std::string> sorted_levels(const std::set<std::string>& found);
std::string listed(const std::vector<std::string>& names);  // the first five

// A column of texts where numbers are needed is a problem; `why` says by what. False: it has numbers.
bool note_text(const Tables& tables, const Column& c, std::string_view why, Processes& processes,
               Problems& problems);

}  // namespace affpcl::columns
