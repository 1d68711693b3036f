// What the readers of all formats agree on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "affpcl/data/table.h"

namespace affpcl {

inline constexpr std::size_t kMostColumns = 50'000;  // more are a mistake, or somebody's joke

// By column: whether it is among those `wanted` (empty: all are). Refuses a wanted one that is not
// there, too many, and two of one name.
std::vector<char> choose_columns(const std::string& path, const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted);

void refuse_too_many_columns(const std::string& path, std::size_t columns);

// prefix0, prefix1, …
std::vector<std::string> numbered(const std::string& prefix, std::size_t count);

}  // namespace affpcl
