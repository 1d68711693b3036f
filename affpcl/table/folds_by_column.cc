#include "affpcl/table/folds_by_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"
#include "affpcl/runtime/collectives.h"
#include "affpcl/table/levels.h"

namespace affpcl {
namespace {

// Of each level of a column of texts.
std::vector<double> times_of_levels(const Column& c, const Tables& tables, bool dates_only) {
  const DatesFound dates = find_dates(c.levels);
  std::vector<double> time(c.levels.size());
  if (dates.order != DateOrder::kNone && !dates.ambiguous) {
    for (std::size_t l = 0; l < time.size(); ++l) time[l] = *parse_date(c.levels[l], dates.order);
    return time;
  }
  if (dates_only && dates.ambiguous)
    throw BadInput(
        fmt::format("{}: column '{}' holds dates such as '{}' that may begin with the day or the "
                    "month; write them as 2026-11-30",
                    tables.parts[0].path, c.name, c.levels[0]));
  for (std::size_t r = 0; dates_only && r < c.codes.size(); ++r) {
    if (c.codes[r] < 0) continue;
    const std::string& level = c.levels[static_cast<std::size_t>(c.codes[r])];
    if (!parse_number(level, c.decimal) && find_dates({&level, 1}).order == DateOrder::kNone)
      tables.refuse(r, c.name, level, "is neither a number nor a date, by which rows are ordered");
  }
  if (dates_only)
    throw BadInput(fmt::format("{}: column '{}' holds numbers and dates, or dates of several forms",
                               tables.parts[0].path, c.name));
  std::vector<std::size_t> order(c.levels.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return by_number(c.levels[a], c.levels[b]); });
  for (std::size_t k = 0; k < order.size(); ++k) time[order[k]] = static_cast<double>(k);
  return time;
}

}  // namespace

std::vector<double> row_times(const Tables& tables, const std::string& column,
                              const std::vector<char>& keep, bool dates_only) {
  if (column.empty()) return {};
  const Column& c = *tables.find(column);
  std::vector<double> time = c.numbers;
  if (c.type == Column::Type::kText) {
    const std::vector<double> of_level = times_of_levels(c, tables, dates_only);
    time.clear();
    for (std::int32_t code : c.codes)
      time.push_back(code < 0 ? std::nan("") : of_level[static_cast<std::size_t>(code)]);
  }
  for (std::size_t r = 0; r < time.size(); ++r)
    if (keep[r] != 0 && std::isnan(time[r]))
      tables.refuse(r, column, "", "is no time, by which rows are ordered");
  return time;
}

HeldOut settle_folds(const FrameOptions& o, RowAgents& folds, const std::vector<char>& keep,
                     const std::string& file, Processes& processes) {
  if (!o.time.empty())
    return {.how = Holdout::kForward, .folds = kFolds, .column = o.time, .files = {}};
  if (o.folds.empty()) return {};
  const std::size_t found = settle_names(folds, keep, processes).size();
  if (found < 2 || found > kMostFolds)
    throw BadInput(fmt::format("{}: column '{}' names {} fold{}; `folds` needs 2 to {}", file,
                               o.folds, found, found == 1 ? "" : "s", kMostFolds));
  return {.how = Holdout::kNamed, .folds = static_cast<int>(found), .column = o.folds, .files = {}};
}

std::vector<std::size_t> time_blocks(std::span<const double> times, int blocks) {
  const std::size_t n = times.size(), count = static_cast<std::size_t>(blocks),
                    size = std::max<std::size_t>(1, n / count);
  std::vector<std::size_t> block(n);
  for (std::size_t r = 1; r < n; ++r) {
    const std::size_t left = (n - 1 - r) / size;  // blocks after that of the row
    block[r] = left + 1 < count ? count - 1 - left : 0;
    if (times[r] == times[r - 1]) block[r] = block[r - 1];
  }
  return block;
}

void refuse_one_time(const Frame& frame, Processes& processes) {
  std::size_t later = 0;
  for (std::size_t i = 0; i < frame.agents.size(); ++i)
    later += frame.begin(i + 1, 0) - frame.begin(i, 1);
  if (sum(processes, later) == 0)
    throw BadInput(
        fmt::format("{}: no agent has rows of two times in column '{}', so none are "
                    "later than others",
                    frame.files[0], frame.held_out.column));
}

}  // namespace affpcl
