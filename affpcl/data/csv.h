// CSV files row by row: RFC 4180 with quoted fields, read once from front to back, so that the
// longest file needs a buffer only. Every complaint is a BadInput of one sentence that names the
// file, the line, the column and the value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "affpcl/data/csv_part.h"
#include "affpcl/data/read_options.h"
#include "affpcl/data/text_source.h"

namespace affpcl {

// One row at a time. The first line that is not blank holds the names of the columns; a line sep=;
// and lines with # may come before it. Separator, decimal mark and encoding are found in the first
// lines unless the options say them. Any line ends and blank lines are fine. Spaces around a field
// are dropped unless they are inside its quotes.
class CsvReader {
 public:
  explicit CsvReader(const std::string& path, const ReadOptions& options = {});  // and the header

  const std::string& path() const { return path_; }
  char separator() const { return separator_; }
  char decimal() const { return decimal_; }
  char comment() const { return comment_; }
  std::string_view encoding() const { return file_.encoding(); }
  bool can_be_shared() const { return file_.plain(); }  // by byte ranges
  // A column without a name is called "column 3".
  const std::vector<std::string>& header() const { return header_; }
  // The index of the column called `name`; BadInput, with the nearest name, if there is none.
  std::size_t column(std::string_view name) const;

  // The next row that is not blank; false at the end. It has as many fields as the header. Rows
  // that have not are passed over and refused at the end, ten of them at once.
  bool next();
  std::span<const std::string_view> fields() const { return fields_; }  // until the next next()
  std::int64_t line() const { return line_; }  // where the row begins; the file begins with line 1
  std::int64_t next_line() const { return next_line_; }

  std::int64_t size() const { return file_.size(); }  // bytes; 0: no telling
  std::int64_t position() const { return consumed_ + static_cast<std::int64_t>(begin_); }
  void rewind();                        // to the first row
  void read_only(const CsvPart& part);  // its records are all there are from now on

  // Throws a complaint about a field of the current row.
  [[noreturn]] void refuse(std::size_t column, std::string_view what) const;

 private:
  void read_header(const ReadOptions& options);
  void to_header(ReadOptions& options);
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }
  std::string_view first_line();
  void skip_line();
  void name_columns();
  bool record();
  bool scan();
  void refill();
  void check_encoding();
  void note_ragged();
  std::string column_place(std::size_t column) const;
  [[noreturn]] void refuse_ragged() const;
  [[noreturn]] void fail(std::int64_t line, std::string_view what) const;
  [[noreturn]] void not_text(std::int64_t line) const;
  [[noreturn]] void too_long() const;

  std::string path_;
  TextSource file_;
  char separator_ = ',', decimal_ = '.', comment_ = '\0';
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;
  std::vector<std::size_t> escaped_;  // fields that hold doubled quotes
  std::vector<char> buffer_;          // [begin_, end_) is unread; a zero byte follows it
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t consumed_ = 0;              // bytes that left the buffer
  std::int64_t line_ = 1, next_line_ = 1;  // of this row, and of the one after it
  CsvPart rows_;                           // which of the file's rows are read
  bool at_end_ = false;                    // the file has no more bytes
  bool blank_ = false;                     // the record just scanned
  std::vector<std::string> ragged_;        // rows with too few or too many fields, in a sentence
};

}  // namespace affpcl
