// A header below the first line, as below the title of a spreadsheet.
#pragma once

#include <string>
#include <string_view>

#include "affpcl/data/read_options.h"

namespace affpcl {

// Where the names of columns in one of the first lines include one that the header lacks: words about it,
// to follow a complaint. Else nothing.
std::string later_header(const std::string& path, std::string_view name,
                         const ReadOptions& options);

}  // namespace affpcl
