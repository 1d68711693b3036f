// Rows of fixed width in bytes, as NumPy and idx files hold them, into columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/base/function_ref.h"
#include "affpcl/data/input_file.h"
#include "affpcl/data/table.h"

namespace affpcl {

struct BinaryField {
  std::string name;
  char kind = 'f';       // f float, i integer, u unsigned, b bool, U UTF-32, S bytes
  std::size_t size = 8;  // bytes
  bool big_endian = false;
  std::size_t offset = 0;  // in the row
};

bool is_readable(const BinaryField& field);  // of a kind and size we know

struct BinaryLayout {
  std::size_t rows = 0, row_bytes = 0;
  bool by_column = false;  // all of a field's values, then the next field's: offsets say nothing
  std::vector<BinaryField> fields;
};

std::vector<std::string> field_names(const BinaryLayout& layout);

// Refuses what `available` bytes cannot hold, before any memory is asked for.
void refuse_short(const std::string& path, const BinaryLayout& layout, std::int64_t available);

// Puts the chosen fields behind table.columns. `read` gives the next bytes, fewer at the end only.
void read_binary(const BinaryLayout& layout, const std::vector<char>& chosen,
                 FunctionRef<std::size_t(char* to, std::size_t bytes)> read, DataTable& table);

// The rows of a file that stands at the first of them; `wanted` as in TableOptions.
DataTable read_binary(InputFile& file, const BinaryLayout& layout,
                      const std::vector<std::string>& wanted);

}  // namespace affpcl
