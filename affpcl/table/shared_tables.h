// One table that several processes read together: each reads some of the files, or of one CSV file
// a range of bytes.
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/tables.h"
#include "affpcl/runtime/processes.h"

namespace affpcl {

// The rows of this process: all processes' rows, in the order of the ranks, are the table that one
// alone would read. Columns have the types and levels of that table, and Column::missing counts its
// blanks. `header` is that of `files` and `beside`. Other formats than CSV, in one file, are read
// by the first process.
Tables read_shared(const std::vector<std::string>& files, const std::vector<std::string>& header,
                   const std::vector<std::string>& beside, const TableOptions& options,
                   Processes& processes);

// Where the part of this process lies when all of them share a CSV file.
CsvPart own_part(const std::string& path, Processes& processes, const ReadOptions& reading = {});

}  // namespace affpcl
