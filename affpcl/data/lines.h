// A text file line by line. A zero byte, or a line of ten million characters, is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "affpcl/data/input_file.h"

namespace affpcl {

class LineReader {
 public:
  explicit LineReader(const std::string& path) : file_(path) {}

  bool next();                                     // false at the end
  std::string_view line() const { return line_; }  // without its end; until the next next()
  std::int64_t number() const { return number_; }  // from 1
  const std::string& path() const { return file_.path(); }

 private:
  InputFile file_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::string_view line_;
  std::int64_t number_ = 0;
};

}  // namespace affpcl
