// One table that several ranks read: each reads some of the files, or a byte range of one CSV file.
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/tables.h"
#include "affpcl/runtime/processes.h"

namespace affpcl {

// The rows of this rank. The rows of all ranks, in the order of the ranks, are the table that a
// process alone would read. Columns have the types and levels of that table, and Column::missing
// counts its blanks. `header` is that of `files` and `beside`. Rank 0 alone reads a single file of
// another format than CSV.
Tables read_shared(const std::vector<std::string>& files, const std::vector<std::string>& header,
                   const std::vector<std::string>& beside, const TableOptions& options,
                   Processes& processes);

// The byte range of this rank where all ranks read one CSV file.
CsvPart own_part(const std::string& path, Processes& processes, const ReadOptions& reading = {});

}  // namespace affpcl
