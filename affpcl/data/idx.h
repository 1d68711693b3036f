// idx files, the format of the MNIST digits: the first dimension is rows, the others are columns
// px0, px1, …; a file of one dimension is a column called label.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

DataTable read_idx(const std::string& path, const TableOptions& options);
std::vector<std::string> idx_header(const std::string& path);
bool is_idx_magic(std::string_view opening);

}  // namespace affpcl
