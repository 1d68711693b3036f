#include "affpcl/data/levels.h"

namespace affpcl {

void Levels::add(std::string_view field) {
  if (missing_.has(field)) {
    column_.codes.push_back(-1);
    ++column_.missing;
    return;
  }
  if (last_ < 0 || column_.levels[static_cast<std::size_t>(last_)] != field) {
    const auto found = known_.find(field);
    if (found != known_.end()) {
      last_ = *found;
    } else {
      last_ = static_cast<std::int32_t>(column_.levels.size());
      column_.levels.emplace_back(field);
      known_.insert(last_);
    }
  }
  column_.codes.push_back(last_);
}

}  // namespace affpcl
