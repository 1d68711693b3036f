#include "affpcl/data/columns.h"

#include <fmt/format.h>

#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/field.h"

namespace affpcl {

void refuse_too_many_columns(const std::string& path, std::size_t columns) {
  if (columns > kMostColumns)
    throw BadInput(fmt::format("{} has {} columns, more than {}", path, columns, kMostColumns));
}

std::vector<char> choose_columns(const std::string& path, const std::vector<std::string>& names,
                                 const std::vector<std::string>& wanted) {
  refuse_too_many_columns(path, names.size());
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t c = 0; c < names.size(); ++c) {
    const auto [same, is_new] = place.emplace(names[c], c);
    if (!is_new)
      throw BadInput(fmt::format("{}: columns {} and {} are both called '{}'", path,
                                 same->second + 1, c + 1, shown(names[c])));
  }
  std::vector<char> chosen(names.size(), wanted.empty() ? 1 : 0);
  for (const std::string& name : wanted) {
    const auto found = place.find(name);
    if (found == place.end()) throw BadInput(lacks_column(path, name, names));
    chosen[found->second] = 1;
  }
  return chosen;
}

std::vector<std::string> numbered(const std::string& prefix, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}{}", prefix, i));
  return names;
}

}  // namespace affpcl
