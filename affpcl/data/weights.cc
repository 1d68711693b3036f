#include "affpcl/data/weights.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"

namespace affpcl {

std::vector<double> read_weights(const std::string& path, const std::string& agent_column,
                                 const std::vector<std::string>& channels,
                                 const std::vector<std::string>& agents, const std::string& data) {
  CsvReader in(path);
  const std::size_t agent = in.column(agent_column);
  std::vector<std::size_t> columns;
  for (const std::string& name : channels) columns.push_back(in.column(name));
  std::unordered_map<std::string, std::vector<double>> given;
  while (in.next()) {
    std::vector<double> theta;
    for (std::size_t column : columns) {
      const std::optional<double> weight = parse_number(in.fields()[column], in.decimal());
      if (!weight) in.refuse(column, "is not a number");
      theta.push_back(*weight);
    }
    if (!given.try_emplace(std::string(in.fields()[agent]), std::move(theta)).second)
      in.refuse(agent, "has weights already");
  }
  std::vector<double> all;
  for (const std::string& name : agents) {
    const auto found = given.find(name);
    if (found == given.end())
      throw BadInput(fmt::format("{} has no weights for agent '{}' of {}", path, name, data));
    all.insert(all.end(), found->second.begin(), found->second.end());
  }
  return all;
}

}  // namespace affpcl
