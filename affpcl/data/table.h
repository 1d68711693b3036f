// A CSV file as columns of numbers and texts: about eight bytes a number and four a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affpcl {

struct Column {
  enum class Type { kNumber, kText };
  std::string name;
  Type type = Type::kNumber;
  std::vector<double> numbers;      // NaN: missing
  std::vector<std::int32_t> codes;  // of a text, into `levels`; -1: missing
  std::vector<std::string> levels;  // in the order they appear
  std::int64_t missing = 0;
  std::int64_t first_text = -1;  // the first row without a number, where numbers were looked for
};

struct CsvTable {
  std::string path;
  std::int64_t rows = 0;
  std::vector<Column> columns;

  const Column* find(std::string_view name) const;  // null if there is none
  // The column called `name`; BadInput, with the nearest name, if there is none.
  const Column& column(std::string_view name) const;
  // The same, which must hold numbers: otherwise BadInput names the first field that is none.
  const std::vector<double>& numbers(std::string_view name) const;
  std::int64_t line(std::int64_t row) const;  // of the file, counted from 1

  // (row, line) wherever a line does not just follow the one before.
  std::vector<std::pair<std::int64_t, std::int64_t>> line_breaks;
};

struct CsvOptions {
  std::vector<std::string> columns = {};  // those wanted, in this order; empty: all
  std::vector<std::string> text = {};    // taken as text, whatever they look like (an agent's name)
  std::vector<std::string> number = {};  // must be numbers: the first field that is none is refused
};

// The whole table. A column is of numbers if every field that is not missing is one, else of text.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace affpcl
