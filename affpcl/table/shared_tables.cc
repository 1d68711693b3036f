#include "affpcl/table/shared_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/csv_table.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"
#include "affpcl/math/sum_tree.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {
namespace {

bool is_text(const Column& c) { return c.type == Column::Type::kText; }

enum class How { kRankZero, kFiles, kParts };

// One rank alone can read a pipe; bytes of a packed file, or of one that is not UTF-8, do not tell
// where records begin.
How how_to_read(const std::vector<std::string>& files, const std::vector<std::string>& beside,
                const ReadOptions& reading) {
  std::error_code error;
  if (!beside.empty()) return How::kRankZero;
  for (const std::string& path : files)
    if (!std::filesystem::is_regular_file(path, error)) return How::kRankZero;
  if (files.size() > 1) return How::kFiles;
  return is_csv(files[0]) && CsvReader(files[0], reading).can_be_shared() ? How::kParts
                                                                          : How::kRankZero;
}

// The tables of a rank that reads nothing.
Tables no_rows_of(const std::vector<std::string>& files, const std::vector<std::string>& header,
                  const TableOptions& options) {
  Tables tables;
  for (const std::string& path : files) {
    tables.parts.push_back({.path = path, .rows = 0, .columns = {}, .line_breaks = {}});
    tables.first.push_back(0);
  }
  for (const std::string& name : options.columns.empty() ? header : options.columns)
    tables.columns.push_back({.name = name});
  return tables;
}

// The levels of a column of texts, in the order in which they appear in the whole table.
void gather_levels(Column& c, Processes& processes) {
  std::vector<std::string> all;
  std::unordered_map<std::string, std::int32_t> code;
  for (std::vector<std::string>& theirs : all_gather(processes, c.levels))
    for (std::string& level : theirs)
      if (code.emplace(level, static_cast<std::int32_t>(all.size())).second)
        all.push_back(std::move(level));
  std::vector<std::int32_t> place;
  for (const std::string& level : c.levels) place.push_back(code[level]);
  for (std::int32_t& k : c.codes)
    if (k >= 0) k = place[static_cast<std::size_t>(k)];
  c.levels = std::move(all);
}

// Like on_all_ranks(), but bad rows of several ranks are listed as one rank would list them.
void read_on_all_ranks(Processes& all, FunctionRef<void()> work) {
  std::vector<std::string> refused;  // "fatal" or "rows", then the sentences
  try {
    work();
  } catch (const BadRows& e) {
    refused = e.sentences;
    refused.insert(refused.begin(), e.fatal ? "fatal" : "rows");
  } catch (const BadInput& e) {
    refused = {"fatal", e.marked()};
  }
  if (!all.any(!refused.empty())) return;
  constexpr std::size_t kMost = 10;
  std::vector<std::string> list;
  for (const std::vector<std::string>& theirs : all_gather(all, refused)) {
    if (theirs.empty()) continue;
    for (std::size_t k = 1; k < theirs.size() && list.size() < kMost; ++k)
      list.push_back(theirs[k]);
    if (theirs[0] == "fatal" || list.size() == kMost) break;
  }
  throw BadInput(several(list));
}

}  // namespace

CsvPart own_part(const std::string& path, Processes& processes, const ReadOptions& reading) {
  std::array<double, 3> whole{};  // where rows begin and end, and the first one's line
  CsvMarks marks;
  on_all_ranks(processes, [&] {
    try {
      CsvReader reader(path, reading);
      marks = {.separator = reader.separator(), .comment = reader.comment()};
      whole = {static_cast<double>(reader.position()), static_cast<double>(reader.size()),
               static_cast<double>(reader.next_line())};
    } catch (const BadInput& e) {
      if (processes.first()) throw;
      throw BadInput(fmt::format("rank {}: {}", processes.rank(), e.marked()));
    }
  });
  broadcast(processes, whole);
  const auto begin = static_cast<std::int64_t>(whole[0]);
  const std::int64_t bytes = static_cast<std::int64_t>(whole[1]) - begin;
  const Leaves mine = share_of(bytes, processes.rank(), processes.count());
  CsvPassage passage;
  on_all_ranks(processes,
               [&] { passage = csv_passage(path, marks, begin + mine.first, begin + mine.last); });
  // The passages of all ranks, one after another, up to that of this rank.
  constexpr std::size_t kNumbers = kCsvStates + 1;
  std::vector<double> numbers;
  for (CsvState s : passage.leaves) numbers.push_back(static_cast<double>(s));
  numbers.push_back(static_cast<double>(passage.lines));
  const std::vector<double> all = all_gather(processes, numbers);
  auto state = static_cast<std::size_t>(CsvState::kRecord);
  auto line = static_cast<std::int64_t>(whole[2]);
  for (std::size_t r = 0; r < static_cast<std::size_t>(processes.rank()); ++r) {
    line += static_cast<std::int64_t>(all[r * kNumbers + kCsvStates]);
    state = static_cast<std::size_t>(all[r * kNumbers + state]);
  }
  const std::int64_t end = begin + mine.last, record = passage.record[state];
  if (record < 0) return {.begin = end, .line = line, .end = end};
  return {.begin = record, .line = line + passage.lines_before[state], .end = end};
}

Tables read_shared(const std::vector<std::string>& files, const std::vector<std::string>& header,
                   const std::vector<std::string>& beside, const TableOptions& options,
                   Processes& processes) {
  const InputScope once;
  if (processes.count() == 1) return read_tables(files, beside, options);
  const How here = processes.first() ? how_to_read(files, beside, options.reading) : How{};
  const auto how = static_cast<How>(broadcast(processes, static_cast<std::int64_t>(here)));
  TablesShare share;
  if (how == How::kFiles) {
    const Leaves run =
        share_of(static_cast<std::int64_t>(files.size()), processes.rank(), processes.count());
    share.first = static_cast<std::size_t>(run.first);
    share.last = static_cast<std::size_t>(run.last);
  } else if (how == How::kParts) {
    share.part = own_part(files[0], processes, options.reading);
  } else if (!processes.first()) {
    share.last = 0;
  }
  Tables tables;
  const auto read = [&] {
    tables = share.first < share.last ? read_tables(files, beside, options, share)
                                      : no_rows_of(files, header, options);
  };
  share.part ? read_on_all_ranks(processes, read) : on_all_ranks(processes, read);
  if (sum(processes, tables.rows) == 0) throw BadInput(no_rows(files[0]));

  std::vector<double> counts;
  for (const Column& c : tables.columns) counts.push_back(is_text(c) ? 1 : 0);
  sum(processes, counts);
  TableOptions again{.reading = options.reading};
  for (std::size_t c = 0; c < counts.size(); ++c) {
    Column& column = tables.columns[c];
    if (counts[c] == 0 || is_text(column)) continue;
    if (share.part) {  // only the file has its numbers as they were written
      again.columns.push_back(column.name);
    } else {
      make_text(column);
    }
  }
  again.text = again.columns;
  on_all_ranks(processes, [&] {
    if (again.columns.empty()) return;
    for (Column& c : read_tables(files, {}, again, share).columns)
      *tables.find(c.name) = std::move(c);
  });
  counts.clear();
  for (Column& c : tables.columns) {
    if (is_text(c)) gather_levels(c, processes);
    counts.push_back(static_cast<double>(c.missing));
  }
  sum(processes, counts);
  for (std::size_t c = 0; c < counts.size(); ++c)
    tables.columns[c].missing = static_cast<std::int64_t>(counts[c]);
  return tables;
}

}  // namespace affpcl
