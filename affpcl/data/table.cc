#include "affpcl/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "affpcl/base/error.h"
#include "affpcl/base/join.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/csv_table.h"
#include "affpcl/data/field.h"
#include "affpcl/data/idx.h"
#include "affpcl/data/leaf.h"
#include "affpcl/data/levels.h"
#include "affpcl/data/npy.h"
#include "affpcl/data/npz.h"
#include "affpcl/data/svmlight.h"

namespace affpcl {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEndings[] = {".csv", ".tsv",     ".npy",      ".npz",
                                         ".svm", ".libsvm",  ".svmlight", ".json",
                                         ".idx", ".parquet", ".arrow",    ".feather"};

struct Format {
  DataTable (*read)(const std::string& path, const TableOptions& options);
  std::vector<std::string> (*header)(const std::string& path);
};
constexpr Format kCsv{read_csv, nullptr};
constexpr Format kNpy{read_npy, npy_header};
constexpr Format kNpz{read_npz, npz_header};
constexpr Format kIdx{read_idx, idx_header};
constexpr Format kSvmlight{read_svmlight, svmlight_header};
constexpr Format kLeaf{read_leaf, leaf_header};

std::string ending(const std::string& path) {
  fs::path name(path);
  std::string e = name.extension().string();
  if (e == ".gz" || e == ".zst" || e == ".xz") e = name.replace_extension().extension().string();
  std::transform(e.begin(), e.end(), e.begin(), [](unsigned char c) { return std::tolower(c); });
  return e;
}

// train-images-idx3-ubyte, as the MNIST files are called.
bool is_idx_name(const std::string& path) {
  const std::size_t at = path.rfind("-idx");
  return ending(path) == ".idx" || (at != std::string::npos && path.find("-ubyte", at) == at + 5);
}

std::string opening(const std::string& path) {
  std::string bytes(16, '\0');
  bytes.resize(InputFile(path).read(bytes.data(), bytes.size()));
  return bytes;
}

// Files that people have and that are no tables of text.
struct Foreign {
  std::string_view magic, what;
};
constexpr Foreign kForeign[] = {
    {"\xD0\xCF\x11\xE0", "is an Excel file; save it as CSV or Parquet"},
    {"BZh", "is packed by bzip2; unpack it with bunzip2 first"},
    {"\x89HDF", "is an HDF5 file; save the table as CSV or Parquet"},
    {"SQLite format 3", "is a SQLite database; export the table as CSV"},
    {"$FL2", "is an SPSS file; save it as CSV"},
    {"<stata_dta>", "is a Stata file; save it as CSV"},
    {"RDX", "is a file of R; write.csv saves a table as CSV"},
    {"%PDF", "is a PDF file; save the table as CSV"},
    {"<!DOCTYPE", "is a web page; download the file itself"},
    {"<!doctype", "is a web page; download the file itself"},
    {"<html", "is a web page; download the file itself"},
};

void refuse_foreign(const std::string& path, std::string_view first) {
  if (first.starts_with("PK\x03\x04")) {
    const std::string last = ending(path);
    throw BadInput(fmt::format("{} {}", path,
                               last == ".xlsx" || last == ".xlsm" || last == ".ods"
                                   ? "is a spreadsheet; save it as CSV or Parquet"
                                   : "is a zip archive; unpack it first (a spreadsheet: save it as "
                                     "CSV or Parquet)"));
  }
  for (const Foreign& f : kForeign)
    if (first.starts_with(f.magic)) throw BadInput(fmt::format("{} {}", path, f.what));
}

const Format& format_of(const std::string& path) {
  const std::string first = opening(path), last = ending(path);
  if (first.starts_with(kNpyMagic) || last == ".npy") return kNpy;
  if (is_idx_magic(first) || is_idx_name(path)) return kIdx;
  if (last == ".npz") return kNpz;
  refuse_foreign(path, first);
  if (last == ".json") return kLeaf;
  if (last == ".svm" || last == ".libsvm" || last == ".svmlight") return kSvmlight;
  return kCsv;
}

// What the caller asked of columns that a reader has brought in the order of the file.
void settle(DataTable& table, const TableOptions& options) {
  const auto find = [&](const std::string& name) {
    return std::find_if(table.columns.begin(), table.columns.end(),
                        [&](const Column& c) { return c.name == name; });
  };
  for (std::size_t c = 0; c < options.columns.size(); ++c)
    std::iter_swap(table.columns.begin() + static_cast<std::ptrdiff_t>(c),
                   find(options.columns[c]));
  for (const std::string& name : options.text)
    if (const auto c = find(name); c != table.columns.end()) make_text(*c);
  for (const std::string& name : options.number)
    if (const auto c = find(name); c != table.columns.end()) table.numbers(name);
}

}  // namespace

void make_text(Column& column) {
  if (column.type == Column::Type::kText) return;
  column.type = Column::Type::kText;
  column.missing = 0;
  Levels levels(column);
  for (double number : column.numbers)
    levels.add(std::isnan(number) ? std::string() : fmt::to_string(number));
  std::vector<double>().swap(column.numbers);
}

DataTable read_table(const std::string& path, const TableOptions& options) {
  const InputScope once;
  const Format& format = format_of(path);
  DataTable table = format.read(path, options);
  if (format.read != kCsv.read) settle(table, options);
  return table;
}

std::vector<std::string> table_header(const std::string& path, const ReadOptions& reading) {
  const InputScope once;
  const Format& format = format_of(path);
  return format.header == nullptr ? CsvReader(path, reading).header() : format.header(path);
}

bool is_csv(const std::string& path) { return format_of(path).read == kCsv.read; }

bool names_agents(const std::string& path) { return format_of(path).read == kLeaf.read; }

bool has_table_ending(const std::string& path) {
  return is_idx_name(path) ||
         std::find(std::begin(kEndings), std::end(kEndings), ending(path)) != std::end(kEndings);
}

std::string table_endings() { return join(kEndings, ", "); }

const Column* DataTable::find(std::string_view name) const {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

const Column& DataTable::column(std::string_view name) const {
  if (const Column* c = find(name)) return *c;
  throw BadInput(lacks_column(path, name, names()));
}

const std::vector<double>& DataTable::numbers(std::string_view name) const {
  const Column& c = column(name);
  if (c.type == Column::Type::kNumber) return c.numbers;
  if (c.first_text < 0)
    throw BadInput(fmt::format("{}: column '{}' was read as text, not as numbers", path, c.name));
  const auto code = static_cast<std::size_t>(c.codes[static_cast<std::size_t>(c.first_text)]);
  throw BadInput(
      complaint(c.first_text, c.name, c.levels[code], no_number(c.levels[code], c.decimal)));
}

std::vector<std::string> DataTable::names() const {
  std::vector<std::string> all;
  for (const Column& c : columns) all.push_back(c.name);
  return all;
}

std::int64_t DataTable::line(std::int64_t row) const {
  const auto after = std::upper_bound(line_breaks.begin(), line_breaks.end(), row,
                                      [](std::int64_t r, const auto& b) { return r < b.first; });
  return std::prev(after)->second + row - std::prev(after)->first;
}

std::string DataTable::complaint(std::int64_t row, std::string_view column, std::string_view value,
                                 std::string_view what) const {
  const std::string place =
      line_breaks.empty() ? fmt::format("row {}", row + 1) : fmt::format("line {}", line(row));
  return affpcl::complaint(path, place, column, value, what);
}

}  // namespace affpcl
