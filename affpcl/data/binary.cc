#include "affpcl/data/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>

#include "affpcl/base/error.h"
#include "affpcl/data/columns.h"
#include "affpcl/data/levels.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;    // bytes read at a time, or one row
constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: all up to it are doubles

using NumberAt = double (*)(const char* bytes);

template <class T, bool swapped>
double number_at(const char* bytes) {
  char copy[sizeof(T)];
  if constexpr (swapped) {
    std::reverse_copy(bytes, bytes + sizeof(T), copy);
  } else {
    std::memcpy(copy, bytes, sizeof(T));
  }
  return static_cast<double>(std::bit_cast<T>(copy));
}

double bool_at(const char* bytes) { return *bytes != 0 ? 1 : 0; }

template <bool swapped>
NumberAt number_reader(char kind, std::size_t size) {
  const auto is = [&](char k, std::size_t s) { return kind == k && size == s; };
  if (is('b', 1)) return bool_at;
  if (is('f', 4)) return number_at<float, swapped>;
  if (is('f', 8)) return number_at<double, swapped>;
  if (is('i', 1)) return number_at<std::int8_t, swapped>;
  if (is('i', 2)) return number_at<std::int16_t, swapped>;
  if (is('i', 4)) return number_at<std::int32_t, swapped>;
  if (is('i', 8)) return number_at<std::int64_t, swapped>;
  if (is('u', 1)) return number_at<std::uint8_t, swapped>;
  if (is('u', 2)) return number_at<std::uint16_t, swapped>;
  if (is('u', 4)) return number_at<std::uint32_t, swapped>;
  if (is('u', 8)) return number_at<std::uint64_t, swapped>;
  return nullptr;
}

bool is_swapped(const BinaryField& f) {
  return f.big_endian != (std::endian::native == std::endian::big);
}

NumberAt number_reader(const BinaryField& f) {
  return is_swapped(f) ? number_reader<true>(f.kind, f.size) : number_reader<false>(f.kind, f.size);
}

// UTF-8 of UTF-32, without the zeros that fill it up; none if a letter does not exist.
std::optional<std::string> utf8(const char* bytes, std::size_t size, bool swapped) {
  std::string text;
  std::size_t used = 0;
  for (std::size_t at = 0; at < size; at += 4) {
    const auto c =
        static_cast<std::uint32_t>(swapped ? number_at<std::uint32_t, true>(bytes + at)
                                           : number_at<std::uint32_t, false>(bytes + at));
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return {};
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)),
          put(0x80 | (c & 0x3F));
    }
    if (c != 0) used = text.size();
  }
  text.resize(used);
  return text;
}

// One column in the making.
class Filler {
 public:
  Filler(const BinaryField& field, std::size_t rows, const DataTable& table)
      : field_(field), table_(table), number_(number_reader(field)) {
    column.name = field.name;
    if (number_ == nullptr) column.type = Column::Type::kText;
    number_ == nullptr ? column.codes.reserve(rows) : column.numbers.reserve(rows);
  }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  void add(const char* first, std::size_t stride, std::size_t count) {
    if (number_ != nullptr) return add_numbers(first, stride, count);
    for (std::size_t r = 0; r < count; ++r) add_text(first + r * stride);
  }

  Column column;

 private:
  void add_numbers(const char* first, std::size_t stride, std::size_t count) {
    const double largest =
        field_.kind == 'f' ? std::numeric_limits<double>::max() : kLargestInteger;
    for (std::size_t r = 0; r < count; ++r) {
      const double value = number_(first + r * stride);
      if (!(std::abs(value) <= largest)) {
        if (!std::isnan(value))
          refuse(column.numbers.size(), fmt::to_string(value),
                 field_.kind == 'f' ? "is not finite" : "is above 2^53, too large for a double");
        ++column.missing;
      }
      column.numbers.push_back(value);
    }
  }

  void add_text(const char* bytes) {
    if (field_.kind == 'U') {
      const std::optional<std::string> text = utf8(bytes, field_.size, is_swapped(field_));
      if (!text) refuse(column.codes.size(), "", "holds letters that do not exist in Unicode");
      levels_.add(*text);
    } else {
      std::string_view text(bytes, field_.size);
      while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
      levels_.add(text);
    }
  }

  [[noreturn]] void refuse(std::size_t row, const std::string& value, const char* what) const {
    throw BadInput(table_.complaint(static_cast<std::int64_t>(row), field_.name, value, what));
  }

  const BinaryField& field_;
  const DataTable& table_;
  NumberAt number_;
  Levels levels_{column};
};

}  // namespace

bool is_readable(const BinaryField& f) {
  if (f.kind == 'U') return f.size > 0 && f.size % 4 == 0;
  if (f.kind == 'S') return f.size > 0;
  return number_reader(f) != nullptr;
}

std::vector<std::string> field_names(const BinaryLayout& layout) {
  std::vector<std::string> names;
  for (const BinaryField& f : layout.fields) names.push_back(f.name);
  return names;
}

void refuse_short(const std::string& path, const BinaryLayout& layout, std::int64_t available) {
  const auto there = static_cast<std::size_t>(std::max<std::int64_t>(available, 0));
  if (layout.rows == 0) throw BadInput(fmt::format("{} has no rows", path));
  if (layout.row_bytes == 0 || layout.rows > there / layout.row_bytes)
    throw BadInput(
        fmt::format("{} is cut short or damaged: {} rows of {} bytes are announced, and {} bytes "
                    "are there",
                    path, layout.rows, layout.row_bytes, there));
}

void read_binary(const BinaryLayout& layout, const std::vector<char>& chosen,
                 FunctionRef<std::size_t(char* to, std::size_t bytes)> read, DataTable& table) {
  std::deque<Filler> fillers;
  std::vector<Filler*> filler(layout.fields.size(), nullptr);
  for (std::size_t f = 0; f < layout.fields.size(); ++f)
    if (chosen[f] != 0) filler[f] = &fillers.emplace_back(layout.fields[f], layout.rows, table);

  // A file by column is, for each field, one of that field alone.
  std::vector<char> block;
  const auto pass = [&](std::size_t row_bytes, auto add) {
    const std::size_t most = std::max<std::size_t>(1, kBlock / row_bytes);
    for (std::size_t row = 0; row < layout.rows; row += most) {
      const std::size_t count = std::min(most, layout.rows - row);
      block.resize(std::max(block.size(), count * row_bytes));
      if (read(block.data(), count * row_bytes) != count * row_bytes)
        throw BadInput(fmt::format("{} is cut short: it ends before row {} of {}", table.path,
                                   row + count, layout.rows));
      add(count);
    }
  };
  if (layout.by_column) {
    for (std::size_t f = 0; f < layout.fields.size(); ++f) {
      const std::size_t size = layout.fields[f].size;
      pass(size, [&](std::size_t count) {
        if (filler[f] != nullptr) filler[f]->add(block.data(), size, count);
      });
    }
  } else {
    pass(layout.row_bytes, [&](std::size_t count) {
      for (std::size_t f = 0; f < layout.fields.size(); ++f)
        if (filler[f] != nullptr)
          filler[f]->add(block.data() + layout.fields[f].offset, layout.row_bytes, count);
    });
  }
  table.rows = static_cast<std::int64_t>(layout.rows);
  for (Filler& f : fillers) table.columns.push_back(std::move(f.column));
}

DataTable read_binary(InputFile& file, const BinaryLayout& layout,
                      const std::vector<std::string>& wanted) {
  DataTable table;
  table.path = file.path();
  read_binary(
      layout, choose_columns(file.path(), field_names(layout), wanted),
      [&](char* to, std::size_t bytes) { return file.read(to, bytes); }, table);
  return table;
}

}  // namespace affpcl
