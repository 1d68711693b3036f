#include "affpcl/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/dialect.h"
#include "affpcl/data/field.h"

namespace affpcl {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = 10'000'000;
constexpr std::size_t kMostRagged = 10;  // rows that are named

bool is_space(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvReader::CsvReader(const std::string& path, const ReadOptions& options)
    : path_(path),
      file_(path, options.encoding),
      comment_(options.comment_mark()),
      buffer_(kBuffer + 1) {
  read_header(options);
}

void CsvReader::read_header(const ReadOptions& options) {
  refill();
  if (end_ == 0) throw BadInput(fmt::format("{} is empty", path_));
  if (unread().starts_with("\xEF\xBB\xBF")) begin_ = 3;
  ReadOptions said = options;
  to_header(said);
  const Dialect dialect = find_dialect(unread(), at_end_, said);
  separator_ = dialect.separator;
  decimal_ = dialect.decimal;
  if (!record()) throw BadInput(fmt::format("{} is empty: it holds blank lines only", path_));
  if (!dialect.unclear.empty())
    throw BadInput(fmt::format(
        "{}, column '{}': is '{}' a number with decimals or with thousands? `decimal ,` or "
        "`decimal .` says which",
        path_, shown(dialect.unclear_column), shown(dialect.unclear)));
  name_columns();
  rows_.begin = position();
  rows_.line = next_line_;
}

// Past the lines in front of the names: those to skip, sep=; and lines with #.
void CsvReader::to_header(ReadOptions& options) {
  for (std::int64_t k = 0; k < options.skip; ++k) {
    if (first_line().empty() && at_end_ && begin_ == end_)
      throw BadInput(fmt::format("{} has {} lines, and {} are to be skipped", path_, next_line_ - 1,
                                 options.skip));
    skip_line();
  }
  for (;;) {
    const std::string_view line = trimmed(first_line());
    const bool sep = line.size() == 5 && (line.starts_with("sep=") || line.starts_with("SEP="));
    const bool comment = line.starts_with(comment_ != '\0' ? comment_ : '#');
    if (sep && options.sep == "auto") options.sep = line.substr(4);
    if (first_line() == "sep=\t" && options.sep == "auto") options.sep = "tab";
    if ((line.empty() && begin_ < end_) || sep || line == "sep=") {
      skip_line();
    } else if (comment) {
      // The last of them holds the names where it has as many fields as the first row, as NumPy's
      // savetxt writes it.
      const std::size_t begin = begin_;
      const std::int64_t at = next_line_;
      const std::string names(line.substr(1));
      skip_line();
      const std::string_view rest = unread();
      const Dialect dialect = find_dialect(rest, at_end_, options);
      const std::size_t fields = count_fields(rest, dialect.separator);
      if (comment_ == '\0' && fields > 1 && count_fields(names, dialect.separator) == fields &&
          parse_number(rest.substr(0, rest.find(dialect.separator)), dialect.decimal)) {
        begin_ = begin +
                 static_cast<std::size_t>(
                     std::string_view(buffer_.data() + begin, end_ - begin).find('#')) +
                 1;
        next_line_ = at;
        return;
      }
    } else {
      return;
    }
  }
}

// The line at begin_, without its end; the buffer then holds all of it.
std::string_view CsvReader::first_line() {
  for (;;) {
    const std::size_t end = unread().find_first_of("\n\r");
    if (end != std::string_view::npos) return unread().substr(0, end);
    if (at_end_) return unread();
    refill();
  }
}

void CsvReader::skip_line() {
  begin_ += first_line().size();
  if (begin_ == end_) return;
  if (buffer_[begin_] == '\r' && begin_ + 1 == end_ && !at_end_) refill();
  begin_ += buffer_[begin_] == '\r' && buffer_[begin_ + 1] == '\n' ? 2 : 1;
  ++next_line_;
}

void CsvReader::name_columns() {
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t c = 0; c < fields_.size(); ++c) {
    header_.push_back(fields_[c].empty() ? fmt::format("column {}", c + 1)
                                         : std::string(fields_[c]));
    const auto [same, is_new] = seen.emplace(header_[c], c);
    if (!is_new)
      fail(line_, fmt::format("columns {} and {} are both called '{}'", same->second + 1, c + 1,
                              shown(header_[c])));
  }
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) throw BadInput(lacks_column(path_, name, header_));
  return static_cast<std::size_t>(found - header_.begin());
}

bool CsvReader::next() {
  while (record()) {
    if (fields_.size() == header_.size()) return true;
    note_ragged();
  }
  if (!ragged_.empty()) refuse_ragged();
  return false;
}

void CsvReader::note_ragged() {
  const std::size_t n = fields_.size(), wanted = header_.size();
  ragged_.push_back(
      fmt::format("{}, line {}: {} fields where the header has {}: {}", path_, line_, n, wanted,
                  n < wanted ? fmt::format("none for column '{}'", shown(header_[n]))
                             : fmt::format("'{}' is one too many", shown(fields_[wanted]))));
  if (ragged_.size() == kMostRagged) refuse_ragged();
}

void CsvReader::refuse_ragged() const { throw BadRows(ragged_, false); }

// The next record that is not blank.
bool CsvReader::record() {
  do {
    if ((begin_ == end_ && at_end_) || position() >= rows_.end) return false;
    if (comment_ != '\0') {
      if (begin_ == end_) refill();
      if (begin_ < end_ && buffer_[begin_] == comment_) {
        skip_line();
        blank_ = true;
        continue;
      }
    }
    while (!scan()) {
      refill();
      if (begin_ == end_) return false;
    }
  } while (blank_);
  if (position() > file_.bad_at()) check_encoding();
  for (std::size_t f : escaped_) {  // "" stands for "; what is read is ours to overwrite
    char* const first = buffer_.data() + (fields_[f].data() - buffer_.data());
    char* to = first;
    for (const char* from = first; from != first + fields_[f].size(); ++from) {
      *to++ = *from;
      if (*from == '"') ++from;
    }
    fields_[f] = {first, static_cast<std::size_t>(to - first)};
  }
  return true;
}

// Splits the record at begin_ into fields and steps behind it; false if its end is not in the
// buffer. The zero byte behind the buffer stops every loop.
bool CsvReader::scan() {
  const char* const start = buffer_.data() + begin_;
  const char* const end = buffer_.data() + end_;
  const char* p = start;
  const char separator = separator_;
  bool quoted = false;
  std::int64_t line = next_line_;
  line_ = line;
  fields_.clear();
  escaped_.clear();
  for (;;) {
    while (is_space(*p) && *p != separator) ++p;
    const char* first = p;
    if (*p == '"') {
      quoted = true;
      const std::int64_t opened = line;
      bool escaped = false;
      first = ++p;
      for (;; ++p) {
        const char c = *p;
        if ((c == '"' || c == '\r') && p + 1 == end && !at_end_) return false;
        if (c == '"') {
          if (p[1] != '"') break;
          escaped = true;
          ++p;
        } else if (c == '\n' || (c == '\r' && p[1] != '\n')) {
          ++line;
        } else if (c == '\0') {
          if (p != end) not_text(line);
          if (!at_end_) return false;
          fail(opened, "a quote is opened and never closed");
        }
      }
      if (escaped) escaped_.push_back(fields_.size());
      fields_.emplace_back(first, static_cast<std::size_t>(p - first));
      ++p;
      while (is_space(*p) && *p != separator) ++p;
    } else {
      while (*p != separator && static_cast<unsigned char>(*p) > '\r') ++p;
      while (*p != separator && *p != '\n' && *p != '\r' && *p != '\0') ++p;
      const char* last = p;
      while (last != first && is_space(last[-1])) --last;
      fields_.emplace_back(first, static_cast<std::size_t>(last - first));
    }
    if (*p == separator) {
      ++p;
      continue;
    }
    if (*p == '\n') {
      ++p;
      break;
    }
    if (*p == '\r') {
      if (p + 1 == end && !at_end_) return false;
      p += p[1] == '\n' ? 2 : 1;
      break;
    }
    if (p == end && at_end_) break;
    if (p == end) return false;
    if (*p == '\0') {
      fields_.pop_back();  // it is in this one
      not_text(line);
    }
    fail(line, fmt::format("'{}' follows a closing quote",
                           shown({p, static_cast<std::size_t>(std::min(end, p + 10) - p)})));
  }
  if (static_cast<std::size_t>(p - start) > kLongestLine) too_long();
  blank_ = fields_.size() == 1 && fields_[0].empty() && !quoted;
  begin_ += static_cast<std::size_t>(p - start);
  next_line_ = line + 1;
  return true;
}

// Moves what is unread to the front and fills the buffer up; doubles it first if it is full.
void CsvReader::refill() {
  if (end_ - begin_ > kLongestLine) too_long();
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  consumed_ += static_cast<std::int64_t>(begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ + 1 >= buffer_.size()) buffer_.resize(2 * buffer_.size());
  end_ += file_.read(buffer_.data() + end_, buffer_.size() - 1 - end_);
  at_end_ = file_.at_end();
  buffer_[end_] = '\0';
}

void CsvReader::rewind() {
  file_.seek(rows_.begin);
  consumed_ = rows_.begin;
  begin_ = end_ = 0;
  buffer_[0] = '\0';
  next_line_ = rows_.line;
  at_end_ = false;
}

void CsvReader::read_only(const CsvPart& part) {
  rows_ = part;
  file_.stay_utf8();
  rewind();
}

// Of the record just scanned, which ends behind the place where the text is not what it was.
void CsvReader::check_encoding() {
  const char* const bad = buffer_.data() + (file_.bad_at() - consumed_);
  std::size_t column = 0;
  while (column + 1 < fields_.size() && fields_[column + 1].data() <= bad) ++column;
  fail(line_,
       fmt::format("{}its bytes are {}; `encoding latin-1` reads them as they are",
                   column_place(column),
                   file_.encoding() == "utf-8"    ? "no UTF-8, as the file seemed to be"
                   : file_.encoding() == "utf-16" ? "no UTF-16, as the file seemed to be"
                                                  : "UTF-8, and others of the file are not"));
}

std::string CsvReader::column_place(std::size_t column) const {
  return column < header_.size() ? fmt::format("column '{}': ", shown(header_[column]))
                                 : fmt::format("field {}: ", column + 1);
}

void CsvReader::refuse(std::size_t column, std::string_view what) const {
  throw BadInput(
      complaint(path_, fmt::format("line {}", line_), header_[column], fields_[column], what));
}

void CsvReader::fail(std::int64_t line, std::string_view what) const {
  std::vector<std::string> all = ragged_;
  all.push_back(fmt::format("{}, line {}: {}", path_, line, what));
  throw BadRows(std::move(all), true);
}

void CsvReader::not_text(std::int64_t line) const {
  fail(line,
       fmt::format("{}a zero byte, so this is not a text file; a spreadsheet must be saved as "
                   "CSV",
                   column_place(fields_.size())));
}

void CsvReader::too_long() const {
  fail(line_,
       fmt::format("more than {} characters; a quote may have been left open", kLongestLine));
}

}  // namespace affpcl
