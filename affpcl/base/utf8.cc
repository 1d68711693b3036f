#include "affpcl/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace affpcl {
namespace {

constexpr std::size_t kLongest = 4000;  // bytes of a message

unsigned byte(char c) { return static_cast<unsigned char>(c); }

// Bytes of the letter at the front of `text`: 0 where it is not UTF-8, -1 where the end cuts it.
int letter_size(std::string_view text) {
  const unsigned c = byte(text[0]);
  if (c < 0x80) return 1;
  const int size = c >= 0xC2 && c <= 0xDF   ? 2
                   : (c & 0xF0) == 0xE0     ? 3
                   : c >= 0xF0 && c <= 0xF4 ? 4
                                            : 0;
  if (size == 0) return 0;
  if (text.size() > 1) {
    const unsigned d = byte(text[1]);
    const unsigned lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    const unsigned hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (d < lo || d > hi) return 0;
  }
  for (std::size_t k = 2; k < static_cast<std::size_t>(size) && k < text.size(); ++k)
    if ((byte(text[k]) & 0xC0) != 0x80) return 0;
  return text.size() < static_cast<std::size_t>(size) ? -1 : size;
}

}  // namespace

ValidUtf8 valid_utf8(std::string_view text) {
  constexpr std::uint64_t kHigh = 0x8080808080808080u;
  constexpr std::size_t kRun = 64;
  std::size_t at = 0;
  bool ascii = true;
  while (at < text.size()) {
    if (at + kRun <= text.size()) {
      std::array<std::uint64_t, kRun / 8> words;
      std::memcpy(words.data(), text.data() + at, kRun);
      std::uint64_t any = 0;
      for (std::uint64_t word : words) any |= word;
      if ((any & kHigh) == 0) {
        at += kRun;
        continue;
      }
    }
    for (const std::size_t stop = std::min(text.size(), at + kRun); at < stop;) {
      std::uint64_t word = kHigh;
      if (at + 8 <= text.size()) std::memcpy(&word, text.data() + at, 8);
      if ((word & kHigh) == 0) {
        at += 8;
        continue;
      }
      while (at < text.size() && byte(text[at]) < 0x80) ++at;
      if (at == text.size()) break;
      ascii = false;
      const int size = letter_size(text.substr(at));
      if (size == 0) return {at, 0, false};
      if (size < 0) return {at, text.size() - at, false};
      at += static_cast<std::size_t>(size);
    }
  }
  return {at, 0, ascii};
}

std::size_t utf8_letter(std::string_view text) {
  const int size = text.empty() ? 0 : letter_size(text);
  return size > 0 ? static_cast<std::size_t>(size) : 1;
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const int size = letter_size(text.substr(at));
    const std::string_view letter = text.substr(at, size > 0 ? static_cast<std::size_t>(size) : 1);
    const unsigned c = byte(letter[0]);
    // U+0080 to U+009F are control characters too.
    const bool control =
        (c < 0x20 && c != '\n') || c == 0x7F || (c == 0xC2 && size == 2 && byte(letter[1]) < 0xA0);
    if (size <= 0 || control) {
      for (const char b : letter) out += fmt::format("\\x{:02x}", byte(b));
    } else {
      out += letter;
    }
    at += letter.size();
  }
  if (out.size() <= kLongest) return out;
  std::size_t front = kLongest / 2, back = out.size() - kLongest / 2;
  while (front > 0 && (byte(out[front]) & 0xC0) == 0x80) --front;
  while (back < out.size() && (byte(out[back]) & 0xC0) == 0x80) ++back;
  return fmt::format("{} ... {}", std::string_view(out).substr(0, front),
                     std::string_view(out).substr(back));
}

}  // namespace affpcl
