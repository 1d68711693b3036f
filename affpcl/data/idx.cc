#include "affpcl/data/idx.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"
#include "affpcl/data/binary.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/input_file.h"

namespace affpcl {
namespace {

// What the third byte says; kind ' ' if nothing.
BinaryField type_of(unsigned char code) {
  BinaryField f{.name = "", .kind = ' ', .size = 0, .big_endian = true};
  const auto is = [&](char kind, std::size_t size) { f.kind = kind, f.size = size; };
  switch (code) {
    case 0x08:
      is('u', 1);
      break;
    case 0x09:
      is('i', 1);
      break;
    case 0x0B:
      is('i', 2);
      break;
    case 0x0C:
      is('i', 4);
      break;
    case 0x0D:
      is('f', 4);
      break;
    case 0x0E:
      is('f', 8);
      break;
    default:
      break;
  }
  return f;
}

BinaryLayout read_layout(InputFile& file) {
  char magic[4] = {};
  const std::string& path = file.path();
  if (file.read(magic, 4) != 4 || !is_idx_magic({magic, 4}))
    throw BadInput(fmt::format(
        "{} does not begin as an idx file does: two zero bytes, a type, a number of dimensions",
        path));
  BinaryLayout layout;
  const BinaryField type = type_of(static_cast<unsigned char>(magic[2]));
  std::size_t columns = 1;
  for (int k = 0; k < magic[3]; ++k) {
    unsigned char b[4];
    if (file.read(reinterpret_cast<char*>(b), 4) != 4)
      throw BadInput(fmt::format("{} is cut short: it ends before its dimensions do", path));
    const std::size_t size = std::size_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    if (k == 0) {
      layout.rows = size;
    } else {
      columns *= size;
      refuse_too_many_columns(path, columns);
    }
  }
  const std::vector<std::string> names =
      magic[3] == 1 ? std::vector<std::string>{"label"} : numbered("px", columns);
  for (const std::string& name : names) {
    layout.fields.push_back(type);
    layout.fields.back().name = name;
    layout.fields.back().offset = layout.row_bytes;
    layout.row_bytes += type.size;
  }
  refuse_short(path, layout, file.size() - 4 - std::int64_t{4} * magic[3]);
  return layout;
}

}  // namespace

bool is_idx_magic(std::string_view opening) {
  return opening.size() >= 4 && opening[0] == 0 && opening[1] == 0 &&
         type_of(static_cast<unsigned char>(opening[2])).size > 0 && opening[3] > 0;
}

std::vector<std::string> idx_header(const std::string& path) {
  InputFile file(path);
  return field_names(read_layout(file));
}

DataTable read_idx(const std::string& path, const TableOptions& options) {
  InputFile file(path);
  return read_binary(file, read_layout(file), options.columns);
}

}  // namespace affpcl
