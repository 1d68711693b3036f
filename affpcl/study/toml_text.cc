#include "affpcl/study/toml_text.h"

#include <fmt/format.h>

#include "affpcl/base/utf8.h"

namespace affpcl {
namespace {

// Reads a text once; `at_` is never inside a letter.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  TomlFault fault() {
    while (at_ < text_.size() && fault_.line == 0) {
      const char c = text_[at_];
      if (c == '#') {
        skip_comment();
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else if (c == '[' && depth_ == 0 && begins_line_) {
        skip_header();
      } else {
        require_ascii("outside strings and comments TOML has ASCII letters only");
        if (c == '[' || c == '{') require_begin("a list or a table begins a value");
        depth_ += (c == '[' || c == '{') - (c == ']' || c == '}');
        begins_line_ = c == '\n' || (begins_line_ && (c == ' ' || c == '\t'));
        advance();
      }
    }
    return fault_;
  }

 private:
  bool begins(std::string_view with) const { return text_.substr(at_).starts_with(with); }
  void advance() {
    if (at_ >= text_.size()) return;
    line_ += text_[at_] == '\n';
    ++at_;
  }
  void refuse(std::string_view why) {
    if (fault_.line == 0)
      fault_ = {line_,
                fmt::format("'{}': {}", text_.substr(at_, utf8_letter(text_.substr(at_))), why)};
  }
  void require_ascii(std::string_view why) {
    const auto c = static_cast<unsigned char>(at_ < text_.size() ? text_[at_] : ' ');
    if (c >= 0x80 || c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r')) refuse(why);
  }
  // Right behind a number, say, it is a part of that to the parser.
  void require_begin(std::string_view why) {
    if (at_ > 0 && std::string_view(" \t\r\n=[{,.").find(text_[at_ - 1]) == std::string_view::npos)
      refuse(why);
  }
  // The [ or [[ of a table, up to its name.
  void skip_header() {
    begins_line_ = false;
    for (; depth_ < 2 && begins("["); ++depth_)  // as many ] follow
      for (advance(); begins(" ") || begins("\t");) advance();
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    const bool bare = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!bare && std::string_view("_-\"']").find(c) == std::string_view::npos)
      refuse("the name of a table begins with a letter, a digit, _ or -");
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void skip_string(char quote) {
    require_begin("a string begins a key or a value");
    begins_line_ = false;
    const std::string three(3, quote);
    const bool lines = begins(three);
    for (int k = 0; k < (lines ? 3 : 1); ++k) advance();
    while (at_ < text_.size() && !(lines ? begins(three) : text_[at_] == quote)) {
      if (!lines && text_[at_] == '\n') return;  // not closed: the parser says so
      if (text_[at_] == '\\' && quote == '"') {
        advance();
        if (at_ < text_.size() &&
            (text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == ' ' || text_[at_] == '\t'))
          skip_continuation();
        else
          require_ascii("a backslash is followed by an ASCII letter"), advance();
      } else {
        advance();
      }
    }
    for (int k = 0; k < (lines ? 3 : 1); ++k) advance();
  }
  // A backslash at the end of a line joins it to the next text.
  void skip_continuation() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      advance();
    require_ascii("a continued string goes on with an ASCII letter");
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1;
  int depth_ = 0;            // of brackets and braces
  bool begins_line_ = true;  // but for blanks
  TomlFault fault_;
};

}  // namespace

TomlFault toml_fault(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  const std::size_t valid = valid_utf8(text).valid;
  if (valid == text.size()) return Scanner(text).fault();
  std::size_t line = 1;
  for (const char c : text.substr(0, valid)) line += c == '\n';
  return {line, fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[valid]))};
}

}  // namespace affpcl
