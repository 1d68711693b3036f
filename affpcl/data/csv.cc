#include "affpcl/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"

namespace affpcl {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = 10'000'000;
constexpr std::string_view kSeparators = ",;\t";

bool is_space(char c) { return c == ' ' || c == '\t'; }

}  // namespace

CsvReader::CsvReader(const std::string& path) : path_(path), file_(path), buffer_(kBuffer + 1) {
  read_header();
}

void CsvReader::read_header() {
  refill();
  if (end_ == 0) throw BadInput(fmt::format("{} is empty", path_));
  const std::string_view opening(buffer_.data(), end_);
  if (const std::size_t zero = opening.find('\0'); zero != std::string_view::npos)
    not_text(
        1 + std::count(opening.begin(), opening.begin() + static_cast<std::ptrdiff_t>(zero), '\n'));
  if (opening.starts_with("\xEF\xBB\xBF")) begin_ = 3;
  detect_separator();
  if (!record()) throw BadInput(fmt::format("{} is empty: it holds blank lines only", path_));
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t c = 0; c < fields_.size(); ++c) {
    header_.push_back(fields_[c].empty() ? fmt::format("column {}", c + 1)
                                         : std::string(fields_[c]));
    const auto [same, is_new] = seen.emplace(header_[c], c);
    if (!is_new)
      fail(line_, fmt::format("columns {} and {} are both called '{}'", same->second + 1, c + 1,
                              shown(header_[c])));
  }
  rows_.begin = position();
  rows_.line = next_line_;
}

// The one of comma, semicolon and tab that stands most often in the first line, outside quotes.
void CsvReader::detect_separator() {
  std::array<int, kSeparators.size()> count{};
  bool quoted = false, blank = true;
  for (std::size_t p = begin_;; ++p) {
    if (p == end_ && !at_end_) {
      p -= begin_;
      refill();
    }
    if (p == end_) break;
    const char c = buffer_[p];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '\n' || c == '\r') && !blank) break;
    if (c != '\n' && c != '\r' && c != ' ') blank = false;
    const std::size_t which = kSeparators.find(c);
    if (!quoted && which != std::string_view::npos) ++count[which];
  }
  separator_ = kSeparators[static_cast<std::size_t>(std::max_element(count.begin(), count.end()) -
                                                    count.begin())];
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) throw BadInput(lacks_column(path_, name, header_));
  return static_cast<std::size_t>(found - header_.begin());
}

bool CsvReader::next() {
  if (!record()) return false;
  const std::size_t n = fields_.size(), wanted = header_.size();
  if (n < wanted)
    fail(line_, fmt::format("{} fields where the header has {}: none for column '{}'", n, wanted,
                            shown(header_[n])));
  if (n > wanted)
    fail(line_, fmt::format("{} fields where the header has {}: '{}' is one too many", n, wanted,
                            shown(fields_[wanted])));
  return true;
}

// The next record that is not blank.
bool CsvReader::record() {
  do {
    if ((begin_ == end_ && at_end_) || position() >= rows_.end) return false;
    while (!scan()) {
      refill();
      if (begin_ == end_) return false;
    }
  } while (blank_);
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
    if (*p == '\0') not_text(line);
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
  const std::size_t room = buffer_.size() - 1 - end_, got = file_.read(buffer_.data() + end_, room);
  at_end_ = got < room;
  end_ += got;
  buffer_[end_] = '\0';
}

bool CsvReader::rewind() {
  if (!file_.seek(rows_.begin)) return false;
  consumed_ = rows_.begin;
  begin_ = end_ = 0;
  buffer_[0] = '\0';
  next_line_ = rows_.line;
  at_end_ = false;
  return true;
}

bool CsvReader::read_only(const CsvPart& part) {
  rows_ = part;
  return rewind();
}

void CsvReader::refuse(std::size_t column, std::string_view what) const {
  throw BadInput(
      complaint(path_, fmt::format("line {}", line_), header_[column], fields_[column], what));
}

void CsvReader::fail(std::int64_t line, std::string_view what) const {
  throw BadInput(fmt::format("{}, line {}: {}", path_, line, what));
}

void CsvReader::not_text(std::int64_t line) const {
  fail(line,
       "a zero byte, so this is not a text file in UTF-8; a spreadsheet must be saved as CSV");
}

void CsvReader::too_long() const {
  fail(line_,
       fmt::format("more than {} characters; a quote may have been left open", kLongestLine));
}

}  // namespace affpcl
