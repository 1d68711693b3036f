// NumPy's .npz files: arrays side by side, all of one length. An array of one dimension is a column
// of its name, one of two dimensions columns name0, name1, ….
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

DataTable read_npz(const std::string& path, const TableOptions& options);
std::vector<std::string> npz_header(const std::string& path);

}  // namespace affpcl
