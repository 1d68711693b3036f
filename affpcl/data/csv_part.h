// A CSV file that several processes read at once, each a range of its bytes. A record belongs to
// the range in which it begins; but a line end inside quotes begins none, and whether a range
// begins inside quotes only the bytes before it can tell. So each process looks at its own range as
// a reader would that comes to it in any of the possible states; put together, these passages tell
// each where its first record begins, and in which line.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "affpcl/base/error.h"

namespace affpcl {

// The records that begin in [begin, end), where the first of them begins.
struct CsvPart {
  std::int64_t begin = 0;
  std::int64_t line = 1;  // of `begin`
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

// What is in the mind of a reader between two bytes.
enum class CsvState { kRecord, kField, kPlain, kQuoted, kQuote, kClosed, kReturn, kComment };
inline constexpr std::size_t kCsvStates = 8;

struct CsvPassage {
  template <class T>
  using ByState = std::array<T, kCsvStates>;  // on coming in

  ByState<CsvState> leaves;
  ByState<std::int64_t> record;        // where the first record begins; -1: none does
  ByState<std::int64_t> lines_before;  // line ends in front of it
  std::int64_t lines = 0;              // line ends in the range
};

struct CsvMarks {
  char separator = ',';
  char comment = '\0';  // begins a line that is no record; '\0': none does
};
// Rows that are no rows of their table, a sentence each. `fatal`: nothing could be read behind.
class BadRows : public BadInput {
 public:
  BadRows(std::vector<std::string> sentences, bool fatal);
  std::vector<std::string> sentences;
  bool fatal;
};

CsvPassage csv_passage(const std::string& path, CsvMarks marks, std::int64_t from, std::int64_t to);

}  // namespace affpcl
