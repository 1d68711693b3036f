// Which files hold the rows, their tables put end to end, and whose row each is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

// The files that `paths` stand for, in order: a folder its *.csv, a pattern what it matches.
std::vector<std::string> data_files(const std::vector<std::string>& paths);

// How the agent of a one-file table is found: `wanted`, or a column called agent, or site.
std::string agent_column(const std::string& path, const std::vector<std::string>& header,
                         const std::string& wanted);

std::string file_agent(const std::string& path);  // the file's name without folder and ending

struct Tables {
  std::vector<CsvTable> parts;     // one a file; their columns are in `columns`
  std::vector<std::size_t> first;  // row of each part
  std::size_t rows = 0;
  std::vector<Column> columns;

  Column* find(std::string_view name);  // null if there is none
  const Column* find(std::string_view name) const;
  [[noreturn]] void refuse(std::size_t row, std::string_view column, std::string_view value,
                           std::string_view what) const;
};

// All files, which must have the same columns; of these the `wanted`, or all if that is empty.
Tables read_tables(const std::vector<std::string>& files, const std::string& agent_column,
                   const std::vector<std::string>& wanted);

struct RowAgents {
  std::vector<std::string> names;
  std::vector<std::int32_t> of_row;  // into names
};

// By the agent column, or, where that is empty, one agent a file.
RowAgents row_agents(const Tables& tables, const std::string& agent_column);

}  // namespace affpcl
