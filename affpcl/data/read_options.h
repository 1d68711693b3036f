// How the text of a table is to be read: what a person may say about it, and what is found out
// where nothing is said.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "affpcl/base/params.h"

namespace affpcl {

// Words for a missing value, in any case.
inline constexpr std::string_view kUsualMissing = "NA,N/A,NaN,null,None,?,-,.";

enum class DecimalMark { kAuto, kPoint, kComma };
enum class TextEncoding { kAuto, kUtf8, kLatin1, kUtf16 };

struct ReadOptions {
  std::string sep = "auto";
  DecimalMark decimal = DecimalMark::kAuto;
  TextEncoding encoding = TextEncoding::kAuto;
  std::string na = std::string(kUsualMissing);
  std::int64_t skip = 0;
  std::string comment = {};
  char decimal_before = '\0';  // of the rows that were fitted, where new rows leave it open

  char separator() const;     // '\0': to be found; BadInput where `sep` is no separator
  char comment_mark() const;  // '\0': none; BadInput where `comment` is no mark
  static const Params<ReadOptions>& params();
};

template <>
struct EnumNames<DecimalMark> {
  static constexpr std::array<std::string_view, 3> all = {"auto", ".", ","};
};
template <>
struct EnumNames<TextEncoding> {
  static constexpr std::array<std::string_view, 4> all = {"auto", "utf-8", "latin-1", "utf-16"};
};

}  // namespace affpcl
