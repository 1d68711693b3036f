// The text of a file as UTF-8, whatever its encoding: UTF-8, UTF-16, or Latin-1 in the form of
// Windows-1252.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "affpcl/data/input_file.h"
#include "affpcl/data/read_options.h"

namespace affpcl {

// Nothing is said about an encoding: a byte order mark decides, or zeros in every second byte; the
// first bytes beyond ASCII are UTF-8 where they are valid, else Latin-1. Text that changes its mind
// later is mixed.
class TextSource {
 public:
  TextSource(const std::string& path, TextEncoding encoding);
  // The next bytes of UTF-8; none at the end only.
  std::size_t read(char* to, std::size_t bytes);
  bool at_end() const { return at_end_; }
  bool seek(std::int64_t at);  // to a position in UTF-8 that was the end of a read line
  void stay_utf8() { wanted_ = TextEncoding::kUtf8; }  // other text is bad from now on
  std::int64_t size() const { return as_it_is() ? file_.size() : 0; }  // 0: no telling
  bool plain() const { return file_.plain() && as_it_is(); }
  // Where the text is not what its beginning said, as a position in UTF-8.
  std::int64_t bad_at() const { return bad_at_; }
  std::string_view encoding() const;  // as found so far

 private:
  enum class Form { kAscii, kUtf8, kLatin1, kUtf16Little, kUtf16Big };
  bool as_it_is() const { return form_ == Form::kAscii || form_ == Form::kUtf8; }
  void recognise();
  std::size_t read_plain(char* to, std::size_t bytes);
  std::size_t read_decoded(char* to, std::size_t bytes);
  void decode_latin1(std::string_view raw);
  void decode_utf16(std::string_view raw);
  void put(char32_t letter);
  void set_bad(std::int64_t at);

  InputFile file_;
  TextEncoding wanted_;
  Form form_ = Form::kAscii;
  bool at_end_ = false;
  std::int64_t given_ = 0;  // bytes of UTF-8 so far
  std::int64_t bad_at_ = std::numeric_limits<std::int64_t>::max();
  std::string held_;            // raw bytes of a letter that is not complete
  std::string decoded_;         // letters not yet given,
  std::size_t decoded_at_ = 0;  // from here on
  std::int64_t begin_ = 0;      // behind a byte order mark of UTF-16
};

}  // namespace affpcl
