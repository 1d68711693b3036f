// UTF-8: which bytes are letters, and texts that are safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace affpcl {

// How many bytes of the front are valid UTF-8; `open` counts those of a letter that the end cuts.
struct ValidUtf8 {
  std::size_t valid, open;
  bool ascii;
};
ValidUtf8 valid_utf8(std::string_view text);

// Bytes of the letter at the front of a text; 1 where it is not UTF-8.
std::size_t utf8_letter(std::string_view text);

// The text as one message shows it: control characters, but for line breaks, and bytes that are not
// UTF-8 are escaped (\x1b), and the middle of a long text is left out.
std::string printable(std::string_view text);

}  // namespace affpcl
