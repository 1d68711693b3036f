#include "affpcl/table/levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "affpcl/base/error.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {

namespace {

[[noreturn]] void refuse_family(const std::string& within) {
  throw BadInput(fmt::format("`{}` needs a number as the target and `family gaussian`",
                             within.empty() ? "crossed" : "within"));
}

}  // namespace

void refuse_levels(const FrameOptions& o) {
  if (o.within.empty() && o.crossed.empty()) return;
  if (!o.within.empty() && !o.crossed.empty())
    throw BadInput("`within` and `crossed` exclude each other: there is one second factor");
  if (!o.channels.empty() || !o.row_weight.empty() || !o.offset.empty() || !o.trials.empty())
    throw BadInput(
        fmt::format("`{}` does not go with `channels`, `row_weight`, `offset` or `trials`",
                    o.within.empty() ? "crossed" : "within"));
  if (o.family != "auto" && family_named(o.family) != Family::kGaussian) refuse_family(o.within);
}

RowAgents encode_names(const std::string& column, const Tables& tables, const FrameOptions& o,
                       Processes& processes, Marked marked) {
  if (column.empty()) return {};
  const Column& c = *tables.find(column);
  RowAgents levels{.names = c.levels, .of_row = c.codes};
  const bool drop = o.missing.at(c.name) == Missing::kDrop;
  std::size_t without = 0;
  bool told = false;
  for (std::size_t r = 0; r < tables.rows; ++r) {
    if (levels.of_row[r] >= 0) continue;
    if (!drop && !told)
      marked.problems.add(
          tables.complaint(r, c.name, "", "is missing; `missing drop` leaves such rows out"));
    told = true;
    without += marked.keep[r] != 0;
    levels.of_row[r] = 0;
    marked.keep[r] = 0;
  }
  without = sum(processes, without);
  if (without > 0)
    marked.notes.push_back(fmt::format("{} {} no {} and {} left out", without,
                                       without == 1 ? "row has" : "rows have", c.name,
                                       without == 1 ? "was" : "were"));
  return levels;
}

std::vector<std::string> settle_names(RowAgents& levels, const std::vector<char>& keep,
                                      Processes& processes) {
  std::vector<double> count(levels.names.size());
  for (std::size_t r = 0; r < levels.of_row.size(); ++r)
    if (keep[r] != 0) ++count[static_cast<std::size_t>(levels.of_row[r])];
  sum(processes, count);
  std::vector<std::size_t> order;
  for (std::size_t g = 0; g < count.size(); ++g)
    if (count[g] > 0) order.push_back(g);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return by_number(levels.names[a], levels.names[b]);
  });
  std::vector<std::int32_t> place(count.size(), -1);
  std::vector<std::string> names;
  for (std::size_t g : order) {
    place[g] = static_cast<std::int32_t>(names.size());
    names.push_back(levels.names[g]);
  }
  for (std::int32_t& g : levels.of_row) g = place[static_cast<std::size_t>(g)];
  return names;
}

void check_levels(const Frame& frame, Processes& processes) {
  const Encoding& e = frame.encoding;
  if (!e.leveled()) return;
  if (e.family != Family::kGaussian || !e.classes.empty()) refuse_family(e.within);
  if (e.within.empty()) return;
  on_all_ranks(processes, [&] {
    for (std::size_t i = 0; i < frame.agents.size(); ++i)
      for (std::size_t r = frame.begin(i, 0); r < frame.begin(i + 1, 0); ++r)
        if (const std::int32_t first = frame.level[frame.begin(i, 0)]; frame.level[r] != first)
          throw BadInput(fmt::format(
              "{}: agent '{}' has rows in '{}' and in '{}' of `within {}`; an agent lies within "
              "one level, else it is `crossed {}`",
              frame.files[0], frame.agents[i], frame.levels[static_cast<std::size_t>(first)],
              frame.levels[static_cast<std::size_t>(frame.level[r])], e.within, e.within));
  });
}

}  // namespace affpcl
