// LIBSVM's and svmlight's text: a label, then index:value pairs. The label is column y, a qid the
// column qid, and the values are columns x1, x2, … (x0 too where a file counts from 0), 0 where
// nothing is said.
#pragma once

#include <string>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

DataTable read_svmlight(const std::string& path, const TableOptions& options);
std::vector<std::string> svmlight_header(const std::string& path);

}  // namespace affpcl
