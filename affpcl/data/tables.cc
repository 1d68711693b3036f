#include "affpcl/data/tables.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/csv_table.h"
#include "affpcl/data/field.h"
#include "affpcl/data/inputs.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> inside_folder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (has_table_ending(entry.path().string())) files.push_back(entry.path().string());
  if (files.empty())
    throw BadInput(
        fmt::format("the folder {} holds no file that ends in {}", path, table_endings()));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> matching(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  const int code = glob(pattern.c_str(), 0, nullptr, &found);
  for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i)
    files.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  if (code != 0) throw BadInput(fmt::format("no file matches {}", pattern));
  return files;
}

// The same column of another table, put behind. Numbers here and texts there are texts.
void append(Column& to, Column&& from) {
  if (to.type != from.type) make_text(to), make_text(from);
  to.missing += from.missing;
  to.numbers.insert(to.numbers.end(), from.numbers.begin(), from.numbers.end());
  std::vector<std::int32_t> code(from.levels.size());
  for (std::size_t l = 0; l < from.levels.size(); ++l) {
    const auto at = std::find(to.levels.begin(), to.levels.end(), from.levels[l]);
    code[l] = static_cast<std::int32_t>(at - to.levels.begin());
    if (at == to.levels.end()) to.levels.push_back(from.levels[l]);
  }
  for (std::int32_t c : from.codes)
    to.codes.push_back(c < 0 ? -1 : code[static_cast<std::size_t>(c)]);
}

void append(Tables& all, DataTable& table) {
  const std::string& first = all.parts[0].path;
  for (const Column& c : all.columns)
    if (table.find(c.name) == nullptr)
      throw BadInput(lacks_column(table.path, c.name, table.names()) + " (" + first + " has it)");
  for (Column& other : table.columns) {
    Column* const mine = all.find(other.name);
    if (mine == nullptr)
      throw BadInput(fmt::format(
          "{} has a column '{}' that {} has not; leave it out with `exclude`, or add it there",
          table.path, other.name, first));
    append(*mine, std::move(other));
  }
}

// The columns of a table; their names stay behind.
std::vector<Column> take_columns(DataTable& table) {
  const std::vector<std::string> names = table.names();
  std::vector<Column> columns = std::move(table.columns);
  table.columns.clear();
  for (const std::string& name : names) table.columns.push_back({.name = name});
  return columns;
}

// Those of `all` that are among `names`. The first name stands in for none, since none means all.
std::vector<std::string> among(const std::vector<std::string>& all,
                               const std::vector<std::string>& names) {
  std::vector<std::string> both;
  for (const std::string& name : all)
    if (std::find(names.begin(), names.end(), name) != names.end()) both.push_back(name);
  if (both.empty() && !all.empty()) both.push_back(names[0]);
  return both;
}

// What `options` asks of one file.
DataTable read_share(const std::string& path, const std::vector<std::string>& header,
                     const TableOptions& options, const std::optional<CsvPart>& part = {}) {
  TableOptions mine{.columns = among(options.columns, header), .reading = options.reading};
  const auto keep = [&](const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& name : from)
      if (std::find(header.begin(), header.end(), name) != header.end()) to.push_back(name);
  };
  keep(options.text, mine.text);
  keep(options.number, mine.number);
  return part ? read_csv(path, mine, *part) : read_table(path, mine);
}

RowAgents agents_by_file(const Tables& tables) {
  RowAgents agents;
  std::map<std::string, std::string> seen;
  for (std::size_t t = 0; t < tables.parts.size(); ++t) {
    const std::string& path = tables.parts[t].path;
    agents.names.push_back(file_agent(path));
    const auto [other, is_new] = seen.emplace(agents.names[t], path);
    if (!is_new)
      throw BadInput(fmt::format(
          "{} and {} would both be the agent '{}'; `agent` names a column that tells them apart",
          other->second, path, agents.names[t]));
    agents.of_row.insert(agents.of_row.end(), static_cast<std::size_t>(tables.parts[t].rows),
                         static_cast<std::int32_t>(t));
  }
  return agents;
}

}  // namespace

std::string file_agent(const std::string& path) {
  fs::path name(path);
  for (const char* packed : {".gz", ".zst", ".xz"})
    if (name.extension() == packed) name.replace_extension();
  return name.stem().string();
}

std::vector<std::string> data_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& given : paths) {
    const std::string path = given == "-" ? "/dev/stdin" : given;
    std::error_code error;
    const bool pattern = !fs::exists(path, error) && path.find_first_of("*?[") != std::string::npos;
    const std::vector<std::string> here = fs::is_directory(path, error) ? inside_folder(path)
                                          : pattern                     ? matching(path)
                                                                        : std::vector{path};
    files.insert(files.end(), here.begin(), here.end());
  }
  std::set<std::string> seen;
  for (const std::string& f : files)
    if (!seen.insert(f).second) throw BadInput(fmt::format("{} is given twice", f));
  return files;
}

std::string agent_column(const std::string& path, const std::vector<std::string>& header,
                         const std::string& wanted) {
  const auto has = [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  };
  if (!wanted.empty()) {
    if (!has(wanted)) throw BadInput(lacks_column(path, wanted, header));
    return wanted;
  }
  for (const char* name : {"agent", "site"})
    if (has(name)) return name;
  throw BadInput(lacks_column(path, "agent", header) +
                 "; `agent` names the one that holds each row's agent");
}

Column* Tables::find(std::string_view name) {
  return const_cast<Column*>(std::as_const(*this).find(name));
}

const Column* Tables::find(std::string_view name) const {
  for (const Column& c : columns)
    if (c.name == name) return &c;
  return nullptr;
}

std::size_t Tables::part_of(std::size_t row) const {
  const auto after = std::upper_bound(first.begin(), first.end(), row);
  return static_cast<std::size_t>(after - first.begin()) - 1;
}

std::string Tables::complaint(std::size_t row, std::string_view column, std::string_view value,
                              std::string_view what) const {
  for (const DataTable& table : beside)
    if (table.find(column) != nullptr)
      return table.complaint(static_cast<std::int64_t>(row), column, value, what);
  const std::size_t part = part_of(row);
  return parts[part].complaint(static_cast<std::int64_t>(row - first[part]), column, value, what);
}

void Tables::refuse(std::size_t row, std::string_view column, std::string_view value,
                    std::string_view what) const {
  throw BadInput(complaint(row, column, value, what));
}

std::vector<std::string> tables_header(const std::vector<std::string>& files,
                                       const std::vector<std::string>& beside,
                                       const ReadOptions& reading) {
  std::vector<std::string> header = table_header(files[0], reading);
  for (const std::string& path : beside)
    for (const std::string& name : table_header(path, reading)) {
      if (std::find(header.begin(), header.end(), name) != header.end())
        throw BadInput(
            fmt::format("{} has a column '{}', and so has what it is put beside; "
                        "rename one",
                        path, name));
      header.push_back(name);
    }
  return header;
}

Tables read_tables(const std::vector<std::string>& files, const std::vector<std::string>& beside,
                   const TableOptions& options, const TablesShare& share) {
  Tables all;
  const InputScope once;
  const std::vector<std::string> header = table_header(files[0], options.reading);
  for (std::size_t f = 0; f < files.size(); ++f) {
    DataTable table{.path = files[f], .rows = 0, .columns = {}, .line_breaks = {}};
    if (f >= share.first && f < share.last) {
      table = read_share(files[f], header, options, share.part);
    } else if (f == 0) {
      for (const std::string& name : options.columns.empty() ? header : options.columns)
        table.columns.push_back({.name = name});
    }
    if (f > 0 && !table.columns.empty()) append(all, table);
    std::vector<Column> columns = take_columns(table);
    if (f == 0) all.columns = std::move(columns);
    all.first.push_back(all.rows);
    all.rows += static_cast<std::size_t>(table.rows);
    all.parts.push_back(std::move(table));
  }
  for (const std::string& path : beside) {
    DataTable table = read_share(path, table_header(path, options.reading), options);
    if (static_cast<std::size_t>(table.rows) != all.rows)
      throw BadInput(fmt::format("{} has {} rows, and what it is put beside has {}", path,
                                 table.rows, all.rows));
    for (Column& c : take_columns(table)) all.columns.push_back(std::move(c));
    all.beside.push_back(std::move(table));
  }
  if (!options.columns.empty())
    std::erase_if(all.columns, [&](const Column& c) {
      return std::find(options.columns.begin(), options.columns.end(), c.name) ==
             options.columns.end();
    });
  return all;
}

RowAgents row_agents(const Tables& tables, const std::string& agent_column) {
  if (agent_column.empty()) return agents_by_file(tables);
  const Column& c = *tables.find(agent_column);
  for (std::size_t r = 0; r < tables.rows; ++r)
    if (c.codes[r] < 0) tables.refuse(r, c.name, "", "names no agent");
  return {.names = c.levels, .of_row = c.codes};
}

}  // namespace affpcl
