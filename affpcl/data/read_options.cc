#include "affpcl/data/read_options.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"

namespace affpcl {

const Params<ReadOptions>& ReadOptions::params() {
  static const Params<ReadOptions> kParams = {
      {"sep", &ReadOptions::sep,
       "separator of a text table: one character, tab or space; auto: comma, semicolon, tab or |, "
       "found together with the decimal mark"},
      {"decimal", &ReadOptions::decimal, "decimal mark of a text table"},
      {"encoding", &ReadOptions::encoding,
       "encoding of a text table; latin-1 is Windows-1252, its superset"},
      {"na", &ReadOptions::na, "words for a missing value, in any case; a blank always is one"},
      {"skip", &ReadOptions::skip, "lines of a text table before the names of its columns",
       at_least(0)},
      {"comment", &ReadOptions::comment,
       "character that begins a line to ignore (lines with # before the names are ignored "
       "anyway)"},
  };
  return kParams;
}

char ReadOptions::separator() const {
  if (sep == "auto") return '\0';
  const std::string text = sep == "tab" || sep == "\\t" ? "\t" : sep == "space" ? " " : sep;
  const bool letter =
      text.size() == 1 && (static_cast<unsigned char>(text[0]) >= 0x80 ||
                           std::string_view("\"\n\r.+-").find(text[0]) != std::string_view::npos ||
                           (text[0] >= '0' && text[0] <= '9') || text[0] == '\0');
  if (text.size() != 1 || letter)
    throw BadInput(fmt::format(
        "sep = '{}' is no separator: allowed are one character such as , ; | and tab or space",
        sep));
  return text[0];
}

char ReadOptions::comment_mark() const {
  if (comment.empty()) return '\0';
  const bool bad = comment.size() != 1 || static_cast<unsigned char>(comment[0]) <= ' ' ||
                   static_cast<unsigned char>(comment[0]) >= 0x80 || comment[0] == '"' ||
                   comment[0] == separator();
  if (bad)
    throw BadInput(fmt::format("comment = '{}' is not one character such as # or %", comment));
  return comment[0];
}

}  // namespace affpcl
