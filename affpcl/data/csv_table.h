// A CSV file as a table.
#pragma once

#include <string>

#include "affpcl/data/table.h"

namespace affpcl {

// A column is of numbers if every field that is not missing is one, else of text.
DataTable read_csv(const std::string& path, const TableOptions& options);

}  // namespace affpcl
