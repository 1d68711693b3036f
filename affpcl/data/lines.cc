#include "affpcl/data/lines.h"

#include <fmt/format.h>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::size_t kLongestLine = 10'000'000;

}  // namespace

bool LineReader::next() {
  ++number_;
  std::size_t end = buffer_.find('\n', begin_);
  bool at_end = false;
  while (end == std::string::npos && !at_end) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const std::size_t unread = buffer_.size();
    if (unread > kLongestLine)
      throw BadInput(
          fmt::format("{}, line {}: more than {} characters", path(), number_, kLongestLine));
    buffer_.resize(unread + kBlock);
    const std::size_t got = file_.read(buffer_.data() + unread, kBlock);
    buffer_.resize(unread + got);
    at_end = got == 0;
    end = buffer_.find('\n', unread);
  }
  if (at_end && begin_ == buffer_.size()) return false;
  if (end == std::string::npos) end = buffer_.size();
  line_ = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  if (line_.find('\0') != std::string_view::npos)
    throw BadInput(
        fmt::format("{}, line {}: a zero byte, so this is not a text file", path(), number_));
  return true;
}

}  // namespace affpcl
