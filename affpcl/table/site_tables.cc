#include "affpcl/table/site_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/dates.h"
#include "affpcl/data/field.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

bool is_text(const Column& c) { return c.type == Column::Type::kText; }

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Rows of each level of a column of texts, on this process.
std::vector<double> rows_of_levels(const Column& c) {
  std::vector<double> rows(c.levels.size());
  for (std::int32_t code : c.codes)
    if (code >= 0) ++rows[static_cast<std::size_t>(code)];
  return rows;
}

// Gives a column these levels; a text that is none of them becomes "other", the last one.
void set_levels(Column& c, const std::vector<std::string>& levels) {
  std::vector<std::int32_t> place;
  for (const std::string& level : c.levels) {
    auto found = std::find(levels.begin(), levels.end(), level);
    if (found == levels.end()) found = std::find(levels.begin(), levels.end(), kOtherLevel);
    place.push_back(static_cast<std::int32_t>(found - levels.begin()));
  }
  for (std::int32_t& code : c.codes)
    if (code >= 0) code = place[static_cast<std::size_t>(code)];
  c.levels = levels;
}

// The levels that any site names. Without `other`, a text that no site names is refused.
void agree_on_levels(Column& c, bool other, const FrameOptions& o, const Tables& tables,
                     Processes& processes) {
  const std::vector<double> rows = rows_of_levels(c);
  std::vector<std::string> mine, all;
  for (std::size_t l = 0; l < rows.size(); ++l)
    if (rows[l] >= static_cast<double>(o.level_rows)) mine.push_back(c.levels[l]);
  for (const std::vector<std::string>& theirs : all_gather(processes, mine))
    for (const std::string& level : theirs)
      if (!has(all, level)) all.push_back(level);
  std::size_t rare = 0;
  for (std::size_t l = 0; l < rows.size(); ++l) {
    if (rows[l] == 0 || has(all, c.levels[l])) continue;
    if (!other)
      throw BadInput(fmt::format(
          "{}: the target '{}' is '{}' in {} row{}, and a site names classes of at least {} only; "
          "leave such rows out, or set `level_rows`",
          tables.parts[0].path, c.name, c.levels[l], rows[l], rows[l] == 1 ? "" : "s",
          o.level_rows));
    ++rare;
  }
  if (sum(processes, rare) > 0 && !has(all, kOtherLevel)) all.push_back(kOtherLevel);
  set_levels(c, all);
}

// Whether the texts of all sites are dates. Those stay where they are, and become numbers there.
bool dates_everywhere(const Column& c, Processes& processes) {
  const bool here = c.levels.empty() || find_dates(c.levels).order != DateOrder::kNone;
  return sum(processes, here ? 0 : 1) == 0;
}

// What the first has and the second lacks.
std::vector<std::string> beyond(const std::vector<std::string>& names,
                                const std::vector<std::string>& others) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (!has(others, name)) found.push_back(name);
  return found;
}

std::string columns_of(const std::string& site, const std::vector<std::string>& columns) {
  return fmt::format("'{}' has '{}'", site, join(columns, "', '"));
}

// All sites say the same sentence: of a site with columns that most have, and of the first that differs from it.
void refuse_other_columns(const std::vector<std::string>& sites,
                          const std::vector<std::vector<std::string>>& all) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return beyond(all[a], all[b]).empty() && beyond(all[b], all[a]).empty();
  };
  std::size_t usual = 0, most = 0;
  for (std::size_t a = 0; a < all.size(); ++a) {
    std::size_t alike = 0;
    for (std::size_t b = 0; b < all.size(); ++b) alike += same(a, b) ? 1 : 0;
    if (alike > most) usual = a, most = alike;
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (same(usual, s)) continue;
    const std::vector<std::string> more = beyond(all[usual], all[s]),
                                   other = beyond(all[s], all[usual]);
    throw BadInput(
        fmt::format("the columns of sites '{}' and '{}' differ: {}{}{}; all sites need the same "
                    "columns (`features` or "
                    "`exclude` chooses them)",
                    sites[usual], sites[s], more.empty() ? "" : columns_of(sites[usual], more),
                    more.empty() || other.empty() ? "" : " where ",
                    other.empty() ? "" : columns_of(sites[s], other)));
  }
}

// The columns by name, which must be the same everywhere, in the order of the first site.
void agree_on_columns(Tables& tables, const Encoding& encoding, Processes& processes) {
  std::vector<std::string> mine = {processes.name()}, sites;
  for (const Column& c : tables.columns)
    if (c.name != encoding.agent_column) mine.push_back(c.name);
  std::vector<std::vector<std::string>> all = all_gather(processes, mine);
  for (std::vector<std::string>& theirs : all) {
    sites.push_back(theirs.front());
    theirs.erase(theirs.begin());
  }
  refuse_other_columns(sites, all);
  std::vector<Column> ordered;
  for (Column& c : tables.columns)
    if (c.name == encoding.agent_column) ordered.push_back(std::move(c));
  for (const std::string& name : all[0]) ordered.push_back(std::move(*tables.find(name)));
  tables.columns = std::move(ordered);
}

// yes and no at one site, 1 and 0 at another: four classes that are two.
void refuse_unlike_classes(const Column& c, std::size_t own, const FrameOptions& o,
                           const Tables& tables, Processes& processes) {
  constexpr std::size_t kTwo = 2;
  if (c.levels.size() <= kTwo || o.family == "multinomial") return;
  if (sum(processes, own > kTwo ? 1 : 0) > 0) return;
  throw BadInput(
      fmt::format("{}: over all sites the target '{}' has {} classes ('{}'), and at no site more "
                  "than two; write "
                  "them alike at all sites, or state `family multinomial`",
                  tables.parts[0].path, c.name, c.levels.size(), join(c.levels, "', '")));
}

}  // namespace

Tables read_site(const std::vector<std::string>& files, const std::vector<std::string>& header,
                 const FrameOptions& o, const Encoding& encoding, Processes& processes) {
  processes.set_purpose("names and types of columns");
  const TableOptions wanted = columns_needed(header, o, encoding);
  Tables tables = read_tables(files, o.beside, wanted);
  agree_on_columns(tables, encoding, processes);
  const auto local = [&](const Column& c) { return c.name == encoding.agent_column; };
  std::vector<double> texts;
  for (const Column& c : tables.columns) texts.push_back(is_text(c) && !local(c) ? 1 : 0);
  const std::size_t shift = tables.find(encoding.agent_column) == nullptr ? 0 : 1;
  sum(processes, std::span(texts).subspan(shift));
  TableOptions again{.reading = o.reading};
  for (std::size_t c = shift; c < texts.size(); ++c)
    if (texts[c] > 0 && !is_text(tables.columns[c]))
      again.columns.push_back(tables.columns[c].name);
  again.text = again.columns;
  if (!again.columns.empty())  // only the file has its numbers as they were written
    for (Column& c : read_tables(files, o.beside, again).columns)
      *tables.find(c.name) = std::move(c);
  for (std::size_t c = shift; c < tables.columns.size(); ++c) {
    Column& column = tables.columns[c];
    const bool target = is_outcome(o, column.name);
    if (!is_text(column) || !(target || is_feature(o, encoding, column.name))) continue;
    processes.set_purpose("numbers and texts of columns");
    Problems problems;
    if (!has(o.categorical, column.name)) note_slip(tables, column, o.levels, processes, problems);
    problems.refuse(processes);
    processes.set_purpose("names of levels");
    const std::size_t own = column.levels.size();
    if (target || !dates_everywhere(column, processes))
      agree_on_levels(column, !target, o, tables, processes);
    if (target) refuse_unlike_classes(column, own, o, tables, processes);
  }
  processes.set_purpose("numbers of missing values");
  std::vector<double> missing;
  for (const Column& c : tables.columns) missing.push_back(static_cast<double>(c.missing));
  sum(processes, std::span(missing).subspan(shift));
  for (std::size_t c = 0; c < missing.size(); ++c)
    tables.columns[c].missing = static_cast<std::int64_t>(missing[c]);
  return tables;
}

void merge_rare_levels(Tables& tables, const FrameOptions& o, const Encoding& encoding,
                       Processes& processes) {
  if (o.level_rows <= 1) return;
  for (Column& c : tables.columns) {
    if (!is_text(c) || !is_feature(o, encoding, c.name)) continue;
    if (find_dates(c.levels).order != DateOrder::kNone) continue;
    std::vector<double> rows = rows_of_levels(c);
    sum(processes, rows);
    std::vector<std::string> kept;
    bool rare = false;
    for (std::size_t l = 0; l < rows.size(); ++l) {
      if (rows[l] >= static_cast<double>(o.level_rows)) {
        kept.push_back(c.levels[l]);
      } else {
        rare = true;
      }
    }
    if (!rare) continue;
    if (!has(kept, kOtherLevel)) kept.push_back(kOtherLevel);
    set_levels(c, kept);
  }
}

}  // namespace affpcl
