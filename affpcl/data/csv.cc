#include "affpcl/data/csv.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/base/params.h"

namespace affpcl {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = 10'000'000;
constexpr std::string_view kSeparators = ",;\t";

bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

// As much of a value as a sentence can hold, on one line.
std::string shown(std::string_view value) {
  std::size_t size = std::min<std::size_t>(value.size(), 40);
  while (size > 0 && size < value.size() && (value[size] & 0xC0) == 0x80) --size;  // whole letters
  std::string s(value.substr(0, size));
  for (char& c : s)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return size < value.size() ? s + "…" : s;
}

// The value, exactly rounded, of at most 15 digits with or without a point: what most fields are.
// Digits and power of ten are then both doubles without error, so one division rounds once
// (Clinger 1990). False, and nothing said, about any other text.
bool short_decimal(const char* p, const char* end, double& value) {
  static constexpr double kTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = p != end && *p == '-';
  p += negative;
  if (end - p > 16 || p == end) return false;
  std::uint64_t digits = 0;
  const char* point = nullptr;
  const char* const first = p;
  for (; p != end; ++p) {
    const auto digit = static_cast<unsigned char>(*p - '0');
    if (digit < 10) {
      digits = digits * 10 + digit;
    } else if (*p == '.' && point == nullptr) {
      point = p;
    } else {
      return false;
    }
  }
  const auto count = (end - first) - (point != nullptr);
  if (count == 0 || count > 15) return false;
  const double v = point == nullptr ? static_cast<double>(digits)
                                    : static_cast<double>(digits) / kTen[end - point - 1];
  value = negative ? -v : v;
  return true;
}

}  // namespace

std::optional<double> parse_number(std::string_view field) {
  double value = 0;
  if (short_decimal(field.data(), field.data() + field.size(), value)) return value;
  field = trimmed(field);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) {  // too large is no number, too small is zero
    const std::size_t e = field.find_first_of("eE");
    const bool small = e != std::string_view::npos
                           ? field.substr(e).starts_with("e-") || field.substr(e).starts_with("E-")
                           : field.find('.') != std::string_view::npos;
    if (!small) return {};
    return 0.0;
  }
  if (!std::isfinite(value)) return {};
  return value;
}

bool is_missing(std::string_view field) {
  field = trimmed(field);
  const auto is = [&](std::string_view word) {
    return std::equal(field.begin(), field.end(), word.begin(), word.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
  };
  return field.empty() || field == "?" || is("na") || is("nan");
}

std::string csv_complaint(const std::string& path, std::int64_t line, std::string_view column,
                          std::string_view value, std::string_view what) {
  return fmt::format("{}, line {}, column '{}': '{}' {}", path, line, shown(column), shown(value),
                     what);
}

std::string csv_lacks_column(const std::string& path, std::string_view name,
                             std::span<const std::string> names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool list = names.size() <= 20 || !did_you_mean(name, candidates).empty();
  return fmt::format("{} has no column '{}'{}", path, shown(name),
                     list ? hint(name, candidates)
                          : fmt::format("; its {} columns begin with {}, {}", names.size(),
                                        shown(names[0]), shown(names[1])));
}

CsvReader::CsvReader(std::string path) : path_(std::move(path)), buffer_(kBuffer + 1) {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw BadInput(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  try {
    read_header();
  } catch (...) {
    close(file_);
    throw;
  }
}

CsvReader::~CsvReader() { close(file_); }

void CsvReader::read_header() {
  struct stat status {};
  if (fstat(file_, &status) == 0 && S_ISDIR(status.st_mode))
    throw BadInput(fmt::format("cannot read {}: it is a folder", path_));
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
  rows_at_ = position();
  rows_line_ = next_line_;
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
  if (found == header_.end()) throw BadInput(csv_lacks_column(path_, name, header_));
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
    if (begin_ == end_ && at_end_) return false;
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
  while (end_ + 1 < buffer_.size()) {
    const ssize_t got = read(file_, buffer_.data() + end_, buffer_.size() - 1 - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw BadInput(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (got == 0) {
      at_end_ = true;
      break;
    }
    end_ += static_cast<std::size_t>(got);
  }
  buffer_[end_] = '\0';
}

std::int64_t CsvReader::size() const {
  struct stat status {};
  return fstat(file_, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

bool CsvReader::rewind() {
  if (lseek(file_, rows_at_, SEEK_SET) != rows_at_) return false;
  consumed_ = rows_at_;
  begin_ = end_ = 0;
  buffer_[0] = '\0';
  next_line_ = rows_line_;
  at_end_ = false;
  return true;
}

void CsvReader::refuse(std::size_t column, std::string_view what) const {
  throw BadInput(csv_complaint(path_, line_, header_[column], fields_[column], what));
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
