// Parquet, Arrow and Feather files, by way of a Python that has pyarrow.
#pragma once

#include <string>
#include <string_view>

#include "affpcl/data/unpack.h"

namespace affpcl {

bool is_arrow(std::string_view opening);  // by the first bytes, eight of them

// The table as CSV. `place` is where the bytes of `path` can be opened. The Python is $AFFPCL_PYTHON,
// that of the active environment, or python3; BadInput says what to install where none has pyarrow.
void arrow_to_csv(const std::string& path, const std::string& place, WriteBytes write);

}  // namespace affpcl
