#include "affpcl/data/text_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "affpcl/base/utf8.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

unsigned byte(char c) { return static_cast<unsigned char>(c); }

// The letters of Windows-1252 from 0x80 to 0x9f; five places are empty there and control codes here.
constexpr std::array<char32_t, 32> kWindows = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

// Zeros in every second byte, as Western text has in UTF-16.
bool zeros_at(std::string_view opening, std::size_t parity) {
  std::size_t zeros = 0, others = 0;
  for (std::size_t k = 0; k < opening.size(); ++k)
    if (opening[k] == '\0') (k % 2 == parity ? zeros : others) += 1;
  return opening.size() >= 4 && others == 0 && zeros * 10 >= opening.size() / 2 * 9;
}

}  // namespace

TextSource::TextSource(const std::string& path, TextEncoding encoding)
    : file_(path), wanted_(encoding) {
  recognise();
}

void TextSource::recognise() {
  std::string opening(1024, '\0');
  opening.resize(file_.read(opening.data(), opening.size()));
  const bool little = opening.starts_with("\xFF\xFE"), big = opening.starts_with("\xFE\xFF");
  const bool open = wanted_ == TextEncoding::kAuto;
  if (wanted_ == TextEncoding::kUtf16 || (open && (little || big))) {
    form_ = big ? Form::kUtf16Big : Form::kUtf16Little;
    if (little || big) begin_ = 2;
  } else if (open && zeros_at(opening, 1)) {
    form_ = Form::kUtf16Little;
  } else if (open && zeros_at(opening, 0)) {
    form_ = Form::kUtf16Big;
  } else if (wanted_ == TextEncoding::kLatin1) {
    form_ = Form::kLatin1;
  } else if (wanted_ == TextEncoding::kUtf8) {
    form_ = Form::kUtf8;
  }
  file_.seek(begin_);
}

std::size_t TextSource::read(char* to, std::size_t bytes) {
  const std::size_t got = as_it_is() ? read_plain(to, bytes) : read_decoded(to, bytes);
  given_ += static_cast<std::int64_t>(got);
  return got;
}

std::size_t TextSource::read_plain(char* to, std::size_t bytes) {
  std::copy(held_.begin(), held_.end(), to);
  const std::size_t had = held_.size();
  held_.clear();
  const std::size_t got = had + file_.read(to + had, bytes - had);
  at_end_ = got < bytes;
  std::string_view text(to, got);
  const ValidUtf8 found = valid_utf8(text);
  const bool cut = found.open > 0 && at_end_;  // a letter that the file itself cuts
  if (found.valid + found.open == got && !cut) {
    if (!found.ascii && form_ == Form::kAscii && found.open == 0) form_ = Form::kUtf8;
    if (!found.ascii && form_ == Form::kAscii && found.open > 0 &&
        !valid_utf8(text.substr(0, found.valid)).ascii)
      form_ = Form::kUtf8;
    held_ = text.substr(found.valid);
    return found.valid;
  }
  const bool may_change = form_ == Form::kAscii && wanted_ == TextEncoding::kAuto;
  if (may_change && valid_utf8(text.substr(0, found.valid)).ascii) {
    form_ = Form::kLatin1;
    at_end_ = false;
    const std::string raw(text);
    decode_latin1(raw);
    return read_decoded(to, bytes);
  }
  set_bad(given_ + static_cast<std::int64_t>(found.valid));
  return got;
}

std::size_t TextSource::read_decoded(char* to, std::size_t bytes) {
  std::string raw;
  std::size_t got = 0;
  for (;;) {
    const std::size_t ready = std::min(bytes - got, decoded_.size() - decoded_at_);
    std::copy_n(decoded_.data() + decoded_at_, ready, to + got);
    got += ready;
    decoded_at_ += ready;
    if (got == bytes) return got;
    raw = std::move(held_);
    held_.clear();
    const std::size_t had = raw.size();
    raw.resize(had + kBlock);
    const std::size_t more = file_.read(raw.data() + had, kBlock);
    raw.resize(had + more);
    if (more == 0 && raw.empty()) {
      at_end_ = true;
      return got;
    }
    const std::int64_t before = given_;
    given_ += static_cast<std::int64_t>(got);  // where what is decoded next will stand
    decoded_.clear();
    decoded_at_ = 0;
    if (more == 0) {  // half a letter
      set_bad(given_);
      decoded_ = "?";
    } else if (form_ == Form::kLatin1) {
      decode_latin1(raw);
    } else {
      decode_utf16(raw);
    }
    given_ = before;
  }
}

void TextSource::put(char32_t letter) {
  const auto add = [&](char32_t bits) { decoded_ += static_cast<char>(bits); };
  if (letter < 0x80) return add(letter);
  if (letter < 0x800) {
    add(0xC0 | letter >> 6);
  } else {
    if (letter < 0x10000) {
      add(0xE0 | letter >> 12);
    } else {
      add(0xF0 | letter >> 18);
      add(0x80 | (letter >> 12 & 0x3F));
    }
    add(0x80 | (letter >> 6 & 0x3F));
  }
  add(0x80 | (letter & 0x3F));
}

// A letter of two bytes in UTF-8 would be two odd ones in Latin-1, such as Ã©: then the encodings
// are mixed, unless Latin-1 was asked for.
void TextSource::decode_latin1(std::string_view raw) {
  for (std::size_t k = 0; k < raw.size(); ++k) {
    const unsigned c = byte(raw[k]);
    if (c >= 0xC2 && wanted_ == TextEncoding::kAuto && utf8_letter(raw.substr(k)) > 1)
      set_bad(given_ + static_cast<std::int64_t>(decoded_.size()));
    put(c >= 0x80 && c < 0xA0 ? kWindows[c - 0x80] : static_cast<char32_t>(c));
  }
}

void TextSource::decode_utf16(std::string_view raw) {
  const auto unit = [&](std::size_t k) -> char32_t {
    const unsigned a = byte(raw[k]), b = byte(raw[k + 1]);
    return form_ == Form::kUtf16Little ? a | b << 8 : a << 8 | b;
  };
  std::size_t k = 0;
  for (; k + 1 < raw.size(); k += 2) {
    const char32_t first = unit(k);
    if (first < 0xD800 || first > 0xDFFF) {
      put(first);
      continue;
    }
    if (first < 0xDC00 && k + 3 >= raw.size()) break;
    const char32_t second = first < 0xDC00 ? unit(k + 2) : 0;
    if (second < 0xDC00 || second > 0xDFFF) {
      set_bad(given_ + static_cast<std::int64_t>(decoded_.size()));
      put(U'?');
      continue;
    }
    put(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
    k += 2;
  }
  held_ = raw.substr(k);
}

void TextSource::set_bad(std::int64_t at) { bad_at_ = std::min(bad_at_, at); }

bool TextSource::seek(std::int64_t at) {
  at_end_ = false;
  held_.clear();
  decoded_.clear();
  decoded_at_ = 0;
  if (as_it_is()) {
    given_ = at;
    return file_.seek(at);
  }
  given_ = 0;
  file_.seek(begin_);
  std::vector<char> passed(kBlock);
  while (given_ < at)
    if (read(passed.data(),
             std::min<std::size_t>(passed.size(), static_cast<std::size_t>(at - given_))) == 0)
      break;
  return true;
}

std::string_view TextSource::encoding() const {
  switch (form_) {
    case Form::kLatin1:
      return "latin-1";
    case Form::kUtf16Little:
    case Form::kUtf16Big:
      return "utf-16";
    default:
      return "utf-8";
  }
}

}  // namespace affpcl
