// A file of rows, in any of the formats we read, as columns of numbers and texts: about eight bytes
// a number and four a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affpcl/data/dates.h"
#include "affpcl/data/read_options.h"

namespace affpcl {

struct Column {
  enum class Type { kNumber, kText };
  std::string name;
  Type type = Type::kNumber;
  std::vector<double> numbers = {};      // NaN: missing
  std::vector<std::int32_t> codes = {};  // of a text, into `levels`; -1: missing
  std::vector<std::string> levels = {};  // in the order they appear
  std::int64_t missing = 0;
  std::int64_t first_text = -1;  // the first row without a number, where numbers were looked for
  char decimal = '.';            // the decimal mark of its texts
  DateOrder dates = DateOrder::kNone;  // its numbers are days, which the file writes as dates
};

void make_text(Column& column);  // 1.5 becomes "1.5"; texts stay as they are

struct DataTable {
  std::string path;
  std::int64_t rows = 0;
  std::vector<Column> columns;

  const Column* find(std::string_view name) const;  // null if there is none
  // The column called `name`; BadInput, with the nearest name, if there is none.
  const Column& column(std::string_view name) const;
  // The same, which must hold numbers: otherwise BadInput names the first field that is none.
  const std::vector<double>& numbers(std::string_view name) const;
  std::vector<std::string> names() const;

  std::int64_t line(std::int64_t row) const;  // of a text file, counted from 1
  // One sentence about a field: "PATH, line 7, column 'age': 'x' is not a number". A file without
  // lines has rows, counted from 1.
  std::string complaint(std::int64_t row, std::string_view column, std::string_view value,
                        std::string_view what) const;

  std::string read_as = {};  // what a reader has found out beyond the usual: "separator ';', …"

  // (row, line) wherever a line does not just follow the one before; empty: there are no lines.
  std::vector<std::pair<std::int64_t, std::int64_t>> line_breaks;
};

struct TableOptions {
  std::vector<std::string> columns = {};  // those wanted, in this order; empty: all
  std::vector<std::string> text = {};    // taken as text, whatever they look like (an agent's name)
  std::vector<std::string> number = {};  // must be numbers: the first field that is none is refused
  ReadOptions reading = {};              // of text tables
};

// The whole table. What a file is follows from its first bytes and its ending:
//   NumPy's .npy and .npz, LIBSVM's .svm .libsvm .svmlight, idx, LEAF's .json, each of them packed
//   or not; Parquet and Arrow, by way of Python; anything else is CSV.
DataTable read_table(const std::string& path, const TableOptions& options = {});

// The names of all columns.
std::vector<std::string> table_header(const std::string& path, const ReadOptions& reading = {});

bool is_csv(const std::string& path);        // by ending and first bytes
bool names_agents(const std::string& path);  // LEAF: the file itself says whose rows are whose

// Whether the ending is one that only tables have: then a folder's file is read without being
// named.
bool has_table_ending(const std::string& path);
std::string table_endings();  // ".csv, .tsv, …"

}  // namespace affpcl
