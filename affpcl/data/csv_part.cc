#include "affpcl/data/csv_part.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "affpcl/data/field.h"
#include "affpcl/data/input_file.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

std::size_t at(CsvState s) { return static_cast<std::size_t>(s); }

using Steps = std::array<std::array<CsvState, 256>, kCsvStates>;

// CsvReader::scan, byte by byte.
Steps steps_of(CsvMarks marks) {
  Steps next;
  const auto set = [&](CsvState s, char c, CsvState to) {
    next[at(s)][static_cast<unsigned char>(c)] = to;
  };
  using enum CsvState;
  next[at(kQuoted)].fill(kQuoted);
  set(kQuoted, '"', kQuote);
  for (CsvState s : {kRecord, kField, kPlain, kQuote, kClosed, kReturn}) {
    next[at(s)].fill(kPlain);  // behind a closing quote the reader refuses it
    if (s != kPlain)
      for (char space : {' ', '\t'}) set(s, space, s == kQuote || s == kClosed ? kClosed : kField);
    if (s == kRecord || s == kField || s == kReturn || s == kQuote) set(s, '"', kQuoted);
    set(s, '\n', kRecord);
    set(s, '\r', kReturn);
    set(s, marks.separator, kField);
    if (marks.comment != '\0' && (s == kRecord || s == kReturn)) set(s, marks.comment, kComment);
  }
  next[at(kComment)].fill(kComment);
  set(kComment, '\n', kRecord);
  set(kComment, '\r', kReturn);
  return next;
}

// A '\r' ends a line, and so does a '\n' that does not follow one.
std::int64_t line_ends(std::span<const char> bytes, char before) {
  if (before != '\r' && std::memchr(bytes.data(), '\r', bytes.size()) == nullptr)
    return std::count(bytes.begin(), bytes.end(), '\n');
  std::int64_t count = 0;
  for (char c : bytes) {
    count += c == '\r' || (c == '\n' && before != '\r');
    before = c;
  }
  return count;
}

class Passage {
 public:
  Passage(CsvMarks marks, std::int64_t from)
      : marks_(marks), next_(steps_of(marks)), position_(from) {
    for (std::size_t s = 0; s < kCsvStates; ++s) passed.leaves[s] = static_cast<CsvState>(s);
    passed.record.fill(-1);
    passed.lines_before.fill(0);
    passed.record[at(CsvState::kRecord)] = from;
  }

  // The next bytes of the range.
  void take(std::span<const char> bytes, char before) {
    const auto came = passed.leaves;
    const auto record = passed.record;
    const auto holds = [&](char c) {
      return std::memchr(bytes.data(), c, bytes.size()) != nullptr;
    };
    const bool quotes = holds('"') || (marks_.comment != '\0' && holds(marks_.comment));
    for (std::size_t s = 0; s < kCsvStates; ++s) {
      std::size_t like = 0;  // who has come here in the same state has seen the same
      while (came[like] != came[s] || (record[like] < 0) != (record[s] < 0)) ++like;
      if (like < s) {
        passed.leaves[s] = passed.leaves[like];
        if (record[s] < 0) {
          passed.record[s] = passed.record[like];
          passed.lines_before[s] = passed.lines_before[like];
        }
      } else if (quotes || !skip(bytes, s)) {
        walk(bytes, before, s);
      }
    }
    passed.lines += line_ends(bytes, before);
    position_ += static_cast<std::int64_t>(bytes.size());
  }

  CsvPassage passed;

 private:
  // Without a quote among the bytes it is the last separator or line end that counts.
  bool skip(std::span<const char> bytes, std::size_t s) {
    if (passed.leaves[s] == CsvState::kQuoted) return true;
    if (passed.leaves[s] == CsvState::kComment) return false;
    if (passed.record[s] < 0) return false;
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(),
                                   [&](char c) { return c == marks_.separator || c == '\n'; });
    if (last == bytes.rend()) return false;
    CsvState state = *last == '\n' ? CsvState::kRecord : CsvState::kField;
    for (auto c = last.base(); c != bytes.end(); ++c) state = step(state, *c);
    passed.leaves[s] = state;
    return true;
  }

  void walk(std::span<const char> bytes, char before, std::size_t s) {
    CsvState state = passed.leaves[s];
    const auto found = [&](std::size_t k) {
      if (passed.record[s] >= 0) return;
      passed.record[s] = position_ + static_cast<std::int64_t>(k);
      passed.lines_before[s] = passed.lines + line_ends(bytes.first(k), before);
    };
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      if (state == CsvState::kReturn && bytes[k] != '\n') found(k);
      state = step(state, bytes[k]);
      if (state == CsvState::kRecord) found(k + 1);
    }
    passed.leaves[s] = state;
  }

  CsvState step(CsvState s, char c) const { return next_[at(s)][static_cast<unsigned char>(c)]; }

  CsvMarks marks_;
  Steps next_;
  std::int64_t position_;
};

}  // namespace

BadRows::BadRows(std::vector<std::string> all, bool is_fatal)
    : BadInput(several(all)), sentences(std::move(all)), fatal(is_fatal) {}

CsvPassage csv_passage(const std::string& path, CsvMarks marks, std::int64_t from,
                       std::int64_t to) {
  Passage passage(marks, from);
  InputFile file(path);
  file.seek(from - 1);  // behind the names of the columns, so there is a byte before
  std::vector<char> buffer(kBlock + 1);
  file.read(buffer.data(), 1);
  while (from < to) {
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(kBlock, to - from));
    const std::size_t got = file.read(buffer.data() + 1, wanted);
    passage.take({buffer.data() + 1, got}, buffer[0]);
    buffer[0] = buffer[got];
    from += static_cast<std::int64_t>(got);
    if (got < wanted) break;
  }
  return passage.passed;
}

}  // namespace affpcl
