// NumPy's .npy files: one array. One dimension is a column named after the file, two are columns
// x0, x1, …, and the fields of a structured array are columns of their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/data/binary.h"
#include "affpcl/data/table.h"

namespace affpcl {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

DataTable read_npy(const std::string& path, const TableOptions& options);
std::vector<std::string> npy_header(const std::string& path);

// The header of an array of `bytes` bytes in all: its one column is called `name`, several are
// called `prefix` and a number. Complaints begin with `where`.
BinaryLayout npy_layout(const std::string& where, const std::string& name,
                        const std::string& prefix, std::int64_t bytes,
                        FunctionRef<std::size_t(char* to, std::size_t bytes)> read);

}  // namespace affpcl
