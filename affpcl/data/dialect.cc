#include "affpcl/data/dialect.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "affpcl/data/field.h"

namespace affpcl {
namespace {

constexpr std::string_view kSeparators = ",;\t|";
constexpr std::size_t kRecords = 200;  // that are looked at

using Record = std::vector<std::string_view>;

// Fields of the record at `at`, which then stands behind it; quotes stay doubled. False: the text
// ends before the record does.
bool split(std::string_view text, std::size_t& at, char separator, Record& record) {
  record.clear();
  for (;;) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t') && text[at] != separator) ++at;
    std::size_t first = at, last;
    if (at < text.size() && text[at] == '"') {
      first = ++at;
      while (at < text.size() && (text[at] != '"' || text.substr(at).starts_with("\"\"")))
        at += text[at] == '"' ? 2 : 1;
      last = std::min(at, text.size());
      while (at < text.size() && text[at] != separator && text[at] != '\n' && text[at] != '\r')
        ++at;
    } else {
      while (at < text.size() && text[at] != separator && text[at] != '\n' && text[at] != '\r')
        ++at;
      last = at;
    }
    record.push_back(trimmed(text.substr(first, last - first)));
    if (at >= text.size()) return false;
    if (text[at++] == separator) continue;
    if (text[at - 1] == '\r' && at < text.size() && text[at] == '\n') ++at;
    return true;
  }
}

bool is_blank(const Record& r) { return r.size() == 1 && r[0].empty(); }

std::vector<Record> records(std::string_view text, bool whole, char separator, char comment) {
  std::vector<Record> all;
  Record record;
  for (std::size_t at = 0; at < text.size() && all.size() < kRecords;) {
    const bool ignored = comment != '\0' && text[at] == comment;
    const bool complete = split(text, at, separator, record);
    if (!complete && !whole && !all.empty()) break;
    if (!ignored && !is_blank(record)) all.push_back(record);
  }
  return all;
}

// A number that has a mark: 1,5 and -,5 and 1,2e3 with a comma.
bool has_mark(std::string_view field, char mark) {
  return field.find(mark) != std::string_view::npos && parse_number(field, mark).has_value();
}

// 1,234 and 12,345: one group of thousands as well as three decimals.
bool like_thousands(std::string_view field, char mark) {
  if (!field.empty() && (field[0] == '-' || field[0] == '+')) field.remove_prefix(1);
  const std::size_t at = field.find(mark);
  return at >= 1 && at <= 3 && field[0] != '0' && field.size() == at + 4;
}

// What the fields of one column say about the decimal mark.
struct Marks {
  std::size_t commas = 0, points = 0;
  bool clear = false;  // some comma can be nothing but a decimal mark
  std::string_view example;
};

std::vector<Marks> marks_of(const std::vector<Record>& rows) {
  std::vector<Marks> marks(rows[0].size());
  for (std::size_t r = 1; r < rows.size(); ++r)
    for (std::size_t c = 0; c < std::min(marks.size(), rows[r].size()); ++c) {
      const std::string_view field = rows[r][c];
      if (has_mark(field, '.')) ++marks[c].points;
      if (!has_mark(field, ',') || has_mark(field, '.')) continue;
      if (marks[c].commas++ == 0) marks[c].example = field;
      if (!like_thousands(field, ',')) marks[c].clear = true;
    }
  return marks;
}

void find_decimal(const std::vector<Record>& rows, const ReadOptions& options, Dialect& dialect) {
  if (options.decimal != DecimalMark::kAuto) {
    dialect.decimal = options.decimal == DecimalMark::kComma ? ',' : '.';
    return;
  }
  std::size_t commas = 0, points = 0;  // columns
  bool clear = false;
  const std::vector<Marks> marks = marks_of(rows);
  for (const Marks& m : marks) {
    commas += m.commas > m.points;
    points += m.points > 0 && m.commas == 0;
    clear = clear || (m.clear && m.commas > m.points);
  }
  if (commas == 0 || commas < points) return;
  // Who separates by semicolons does so because the comma has another use.
  if (clear || dialect.separator == ';' || options.decimal_before == ',') {
    dialect.decimal = ',';
    return;
  }
  if (options.decimal_before == '.') return;
  for (std::size_t c = 0; c < marks.size(); ++c)
    if (marks[c].commas > marks[c].points && dialect.unclear.empty()) {
      dialect.unclear = marks[c].example;
      dialect.unclear_column = rows[0][c];
    }
}

// By what the candidates are compared, the most important first.
std::tuple<double, double, std::size_t> quality(const std::vector<Record>& rows) {
  const std::size_t names = rows[0].size();
  std::size_t even = 0, fields = 0, numbers = 0;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    even += rows[r].size() == names;
    for (std::string_view field : rows[r]) {
      ++fields;
      numbers += parse_number(field, '.').has_value() || parse_number(field, ',').has_value();
    }
  }
  const auto share = [](std::size_t part, std::size_t all) {
    return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
  };
  return {share(even, rows.size() - 1), share(numbers, fields), names};
}

}  // namespace

std::size_t count_fields(std::string_view text, char separator) {
  Record record;
  std::size_t at = 0;
  split(text, at, separator, record);
  return record.size();
}

Dialect find_dialect(std::string_view opening, bool whole, const ReadOptions& options) {
  const char given = options.separator(), comment = options.comment_mark();
  Dialect dialect;
  std::vector<Record> best;
  for (char separator : given != '\0' ? std::string_view(&given, 1) : kSeparators) {
    std::vector<Record> rows = records(opening, whole, separator, comment);
    if (rows.empty()) continue;
    const bool better = best.empty() || (rows[0].size() > 1 &&
                                         (best[0].size() == 1 || quality(rows) > quality(best)));
    if (!better) continue;
    dialect.separator = separator;
    best = std::move(rows);
  }
  if (!best.empty()) find_decimal(best, options, dialect);
  return dialect;
}

}  // namespace affpcl
