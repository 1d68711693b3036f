#include "affpcl/fit/tables.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> inside_folder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".csv") files.push_back(entry.path().string());
  if (files.empty())
    throw BadInput(fmt::format("the folder {} holds no file that ends in .csv", path));
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

void make_text(Column& c) {
  if (c.type == Column::Type::kText) return;
  c.type = Column::Type::kText;
  std::map<std::string, std::int32_t> known;
  for (double number : c.numbers) {
    if (std::isnan(number)) {
      c.codes.push_back(-1);
      continue;
    }
    const auto [at, is_new] =
        known.emplace(fmt::to_string(number), static_cast<std::int32_t>(c.levels.size()));
    if (is_new) c.levels.push_back(at->first);
    c.codes.push_back(at->second);
  }
  std::vector<double>().swap(c.numbers);
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

void append(Tables& all, CsvTable& table) {
  const std::string& first = all.parts[0].path;
  for (const Column& c : all.columns) {
    if (table.find(c.name) != nullptr) continue;
    std::vector<std::string> names;
    for (const Column& other : table.columns) names.push_back(other.name);
    throw BadInput(csv_lacks_column(table.path, c.name, names) + " (" + first + " has it)");
  }
  for (Column& other : table.columns) {
    Column* const mine = all.find(other.name);
    if (mine == nullptr)
      throw BadInput(
          fmt::format("{} has a column '{}' that {} has not; --exclude it or add it there",
                      table.path, other.name, first));
    append(*mine, std::move(other));
  }
}

RowAgents agents_by_file(const Tables& tables) {
  RowAgents agents;
  std::map<std::string, std::string> seen;
  for (std::size_t t = 0; t < tables.parts.size(); ++t) {
    const std::string& path = tables.parts[t].path;
    agents.names.push_back(file_agent(path));
    const auto [other, is_new] = seen.emplace(agents.names[t], path);
    if (!is_new)
      throw BadInput(
          fmt::format("{} and {} would both be the agent '{}'; --agent COLUMN tells them apart",
                      other->second, path, agents.names[t]));
    agents.of_row.insert(agents.of_row.end(), static_cast<std::size_t>(tables.parts[t].rows),
                         static_cast<std::int32_t>(t));
  }
  return agents;
}

}  // namespace

std::string file_agent(const std::string& path) { return fs::path(path).stem().string(); }

std::vector<std::string> data_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
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
    if (!has(wanted)) throw BadInput(csv_lacks_column(path, wanted, header));
    return wanted;
  }
  for (const char* name : {"agent", "site"})
    if (has(name)) return name;
  throw BadInput(csv_lacks_column(path, "agent", header) +
                 ": --agent COLUMN names the one that says whose row it is");
}

Column* Tables::find(std::string_view name) {
  return const_cast<Column*>(std::as_const(*this).find(name));
}

const Column* Tables::find(std::string_view name) const {
  for (const Column& c : columns)
    if (c.name == name) return &c;
  return nullptr;
}

void Tables::refuse(std::size_t row, std::string_view column, std::string_view value,
                    std::string_view what) const {
  const auto part = static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), row) -
                                             first.begin() - 1);
  const CsvTable& table = parts[part];
  throw BadInput(csv_complaint(table.path, table.line(static_cast<std::int64_t>(row - first[part])),
                               column, value, what));
}

Tables read_tables(const std::vector<std::string>& files, const std::string& agent_column,
                   const std::vector<std::string>& wanted) {
  CsvOptions options{.columns = wanted};
  if (!agent_column.empty()) options.text = {agent_column};
  Tables all;
  for (const std::string& path : files) {
    CsvTable table = read_csv(path, options);
    if (all.parts.empty()) {
      all.columns = std::move(table.columns);
    } else {
      append(all, table);
    }
    table.columns.clear();
    all.first.push_back(all.rows);
    all.rows += static_cast<std::size_t>(table.rows);
    all.parts.push_back(std::move(table));
  }
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
