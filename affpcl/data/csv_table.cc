#include "affpcl/data/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"
#include "affpcl/data/levels.h"

namespace affpcl {
namespace {

// One column in the making.
class Builder {
 public:
  enum class Want { kInfer, kNumber, kText };

  Builder(const CsvReader& reader, const MissingWords& missing, std::size_t index, Want want)
      : reader_(reader),
        missing_(missing),
        index_(index),
        want_(want),
        decimal_(reader.decimal()),
        levels_(column, missing) {
    column.name = reader.header()[index];
    column.decimal = decimal_;
    if (want == Want::kText) column.type = Column::Type::kText;
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Numbers came first, then a text: what the numbers looked like is gone.
  bool late() const { return late_; }

  void reserve(std::size_t rows) {
    if (column.type == Column::Type::kText) column.codes.reserve(rows);
    if (column.type == Column::Type::kNumber && !late_) column.numbers.reserve(rows);
  }

  void add(std::int64_t row) {
    const std::string_view field = reader_.fields()[index_];
    if (column.type == Column::Type::kText) return levels_.add(field);
    if (late_) return;
    const bool missing = missing_numbers_ && missing_.has(field);
    const std::optional<double> number = missing ? std::nullopt : parse_number(field, decimal_);
    if (number && (field.size() < 16 || !beyond_double(field))) {
      column.numbers.push_back(*number);
    } else if (missing || missing_.has(field)) {
      add_missing();
    } else {
      if (want_ == Want::kNumber) reader_.refuse(index_, no_number(field, decimal_));
      column.first_text = row;
      late_ = column.missing != row;
      if (!late_) begin_text(row), levels_.add(field);
      std::vector<double>().swap(column.numbers);
    }
  }

  // The second time through the rows.
  void begin_again() { begin_text(0), column.missing = 0, late_ = false; }

  Column column;

 private:
  void begin_text(std::int64_t missing) {
    column.type = Column::Type::kText;
    column.codes.assign(static_cast<std::size_t>(missing), -1);
  }

  void add_missing() {
    column.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
    ++column.missing;
  }

  const CsvReader& reader_;
  const MissingWords& missing_;
  std::size_t index_;
  Want want_;
  char decimal_;
  bool missing_numbers_ = missing_.holds_numbers();
  bool late_ = false;
  Levels levels_;
};

// What differs from the commonest file, for a note.
std::string unusual(const CsvReader& reader) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (reader.separator() != ',')
    add(reader.separator() == '\t'  ? "separator tab"
        : reader.separator() == ' ' ? "separator space"
                                    : fmt::format("separator '{}'", reader.separator()));
  if (reader.decimal() != '.') add("decimal comma");
  if (reader.encoding() != "utf-8") add(fmt::format("encoding {}", reader.encoding()));
  return text;
}

DataTable read(CsvReader& reader, const TableOptions& options, std::int64_t size) {
  const std::string& path = reader.path();
  using Want = Builder::Want;
  std::vector<Want> want(reader.header().size(), Want::kInfer);
  for (const std::string& name : options.number) want[reader.column(name)] = Want::kNumber;
  for (const std::string& name : options.text) {
    Want& w = want[reader.column(name)];
    if (w == Want::kNumber)
      throw BadInput(
          fmt::format("{}: column '{}' is asked for as text and as numbers", path, name));
    w = Want::kText;
  }
  const MissingWords missing(options.reading.na);
  std::deque<Builder> builders;
  for (const std::string& name : options.columns.empty() ? reader.header() : options.columns) {
    const std::size_t index = reader.column(name);
    builders.emplace_back(reader, missing, index, want[index]);
  }

  DataTable table;
  table.path = path;
  const std::int64_t start = reader.position();
  std::int64_t line = -1;
  for (; reader.next(); ++table.rows) {
    if (reader.line() != ++line) {
      line = reader.line();
      table.line_breaks.emplace_back(table.rows, line);
    }
    if (table.rows == 1000 && size > 0) {  // room for all rows if the rest is like these
      const double share =
          static_cast<double>(reader.position() - start) / static_cast<double>(size);
      for (Builder& b : builders) b.reserve(static_cast<std::size_t>(1.05 * 1001 / share));
    }
    for (Builder& b : builders) b.add(table.rows);
  }

  std::vector<Builder*> late;
  for (Builder& b : builders)
    if (b.late()) late.push_back(&b);
  if (!late.empty()) {
    reader.rewind();
    for (Builder* b : late) b->begin_again(), b->reserve(static_cast<std::size_t>(table.rows));
    std::int64_t rows = 0;
    for (; reader.next(); ++rows)
      for (Builder* b : late) b->add(rows);
    if (rows != table.rows) throw BadInput(fmt::format("{} changed while it was read", path));
  }
  table.read_as = unusual(reader);
  for (Builder& b : builders) table.columns.push_back(std::move(b.column));
  return table;
}

}  // namespace

DataTable read_csv(const std::string& path, const TableOptions& options) {
  CsvReader reader(path, options.reading);
  DataTable table = read(reader, options, reader.size());
  if (table.rows == 0) throw BadInput(no_rows(path));
  return table;
}

DataTable read_csv(const std::string& path, const TableOptions& options, const CsvPart& part) {
  CsvReader reader(path, options.reading);
  reader.read_only(part);
  return read(reader, options, std::min(part.end, reader.size()) - part.begin);
}

std::string no_rows(const std::string& path) {
  return fmt::format("{} has a header but no rows", path);
}

}  // namespace affpcl
