// Which files hold the rows, their tables put end to end, and whose row each is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/csv_part.h"
#include "affpcl/data/table.h"

namespace affpcl {

// The files that `paths` stand for, in order: a folder those whose ending says that they are
// tables, a pattern what it matches.
std::vector<std::string> data_files(const std::vector<std::string>& paths);

// How the agent of a one-file table is found: `wanted`, or a column called agent, or site.
std::string agent_column(const std::string& path, const std::vector<std::string>& header,
                         const std::string& wanted);

std::string file_agent(const std::string& path);  // the file's name without folder and ending

// Files of the same columns put end to end, and files with more columns of the same rows beside
// them.
struct Tables {
  std::vector<DataTable> parts;    // end to end; of their columns only the names are left
  std::vector<std::size_t> first;  // row of each part
  std::vector<DataTable> beside;   // likewise
  std::size_t rows = 0;
  std::vector<Column> columns;

  Column* find(std::string_view name);  // null if there is none
  const Column* find(std::string_view name) const;
  std::size_t part_of(std::size_t row) const;
  std::string complaint(std::size_t row, std::string_view column, std::string_view value,
                        std::string_view what) const;
  [[noreturn]] void refuse(std::size_t row, std::string_view column, std::string_view value,
                           std::string_view what) const;
};

// The names of all columns: of the first file, and of those beside it.
std::vector<std::string> tables_header(const std::vector<std::string>& files,
                                       const std::vector<std::string>& beside,
                                       const ReadOptions& reading = {});

// What one of several processes reads of all files: a run of them, or of the one CSV file a part.
struct TablesShare {
  std::size_t first = 0, last = std::numeric_limits<std::size_t>::max();
  std::optional<CsvPart> part = {};
};

// All files; of their columns those in options.columns, or all if that is empty. Of a share, files
// that are not read have no rows.
Tables read_tables(const std::vector<std::string>& files, const std::vector<std::string>& beside,
                   const TableOptions& options, const TablesShare& share = {});

struct RowAgents {
  std::vector<std::string> names;
  std::vector<std::int32_t> of_row;  // into names
};

// By the agent column, or, where that is empty, one agent a file.
RowAgents row_agents(const Tables& tables, const std::string& agent_column);

}  // namespace affpcl
