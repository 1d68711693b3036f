// LEAF's json: {"users": […], "num_samples": […], "user_data": {user: {"x": [[…], …], "y": […]}}}.
// Columns are agent, y, x0, x1, ….
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

DataTable read_leaf(const std::string& path, const TableOptions& options);
std::vector<std::string> leaf_header(const std::string& path);

}  // namespace affpcl
