#include "affpcl/study/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "affpcl/base/error.h"
#include "affpcl/data/csv.h"
#include "affpcl/data/field.h"

namespace affpcl {
namespace {

constexpr double kMostRounds = 1e7;

std::optional<std::int64_t> whole(std::string_view field, double least, double most) {
  const std::optional<double> x = parse_number(field, '.');
  if (!x || *x != std::floor(*x) || *x < least || *x > most) return std::nullopt;
  return static_cast<std::int64_t>(*x);
}

}  // namespace

std::vector<std::vector<std::int64_t>> read_schedule(const std::string& path,
                                                     const Problem& problem) {
  const std::int64_t n = problem.shape().agents;
  std::unordered_map<std::string_view, std::int64_t> named;
  if (const Names* names = problem.facets().names)
    for (std::size_t i = 0; i < names->agents.size(); ++i)
      named[names->agents[i]] = static_cast<std::int64_t>(i);

  CsvReader in(path);
  const std::size_t round_column = in.column("round"), agent_column = in.column("agent");
  std::vector<std::vector<std::int64_t>> rounds;
  while (in.next()) {
    const auto round = whole(in.fields()[round_column], 1, kMostRounds);
    if (!round) in.refuse(round_column, "is not the number of a round, which count from 1");
    std::optional<std::int64_t> agent;
    if (named.empty()) {
      agent = whole(in.fields()[agent_column], 0, static_cast<double>(n - 1));
    } else if (const auto found = named.find(in.fields()[agent_column]); found != named.end()) {
      agent = found->second;
    }
    if (!agent)
      in.refuse(agent_column, named.empty() ? fmt::format("is not an agent: 0 to {}", n - 1)
                                            : "is not an agent of the problem");
    if (static_cast<std::size_t>(*round) > rounds.size())
      rounds.resize(static_cast<std::size_t>(*round));
    rounds[static_cast<std::size_t>(*round - 1)].push_back(*agent);
  }
  if (rounds.empty()) throw BadInput(fmt::format("{} has no rounds", path));
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    if (rounds[r].empty()) throw BadInput(fmt::format("{} has no agent in round {}", path, r + 1));
    std::sort(rounds[r].begin(), rounds[r].end());
    rounds[r].erase(std::unique(rounds[r].begin(), rounds[r].end()), rounds[r].end());
  }
  return rounds;
}

}  // namespace affpcl
