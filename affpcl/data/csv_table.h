// A CSV file as a table.
#pragma once

#include <string>

#include "affpcl/data/csv_part.h"
#include "affpcl/data/table.h"

namespace affpcl {

// A column is of numbers if every field that is not missing is one, else of text.
DataTable read_csv(const std::string& path, const TableOptions& options);
// Of the rows of one part, which may be none.
DataTable read_csv(const std::string& path, const TableOptions& options, const CsvPart& part);

std::string no_rows(const std::string& path);  // what is wrong with it

}  // namespace affpcl
