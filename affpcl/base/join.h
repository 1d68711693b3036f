// Texts with a separator between them: join(names, ", "). fmt/ranges.h would do the same for seconds
// of compile time in each file.
#pragma once

#include <string>
#include <string_view>

namespace affpcl {

template <class Texts>
std::string join(const Texts& texts, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& text : texts) {
    if (!first) out += separator;
    first = false;
    out += text;
  }
  return out;
}

}  // namespace affpcl
