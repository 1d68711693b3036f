// The one list of problems.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

#include "affpcl/base/params.h"
#include "affpcl/problem/problem.h"

namespace affpcl {

inline constexpr double kMostAgents = 4e9;  // an agent's number is one word of its random stream

struct ProblemKind {
  std::string_view name, doc;
  std::vector<Param> params;
  // One replicate's instance: (values, seed, replicate) decide it.
  std::function<std::unique_ptr<Problem>(const Values&, std::uint64_t, std::uint32_t)> make;
  // The same by a process that makes its share of the agents; empty: every process makes all.
  std::function<std::unique_ptr<Problem>(const Values&, std::uint64_t, std::uint32_t,
                                         const AgentShare&)>
      make_share = {};
};

// The entry of a problem with P::Config, P::params() and a constructor (Config, seed, replicate),
// or (Config, seed, replicate, share).
template <class P>
ProblemKind problem_kind_of(std::string_view name, std::string_view doc) {
  ProblemKind kind{name, doc, P::params().table(),
                   [](const Values& v, std::uint64_t seed, std::uint32_t replicate) {
                     return std::make_unique<P>(P::params().read(v), seed, replicate);
                   }};
  if constexpr (std::is_constructible_v<P, const typename P::Config&, std::uint64_t, std::uint32_t,
                                        const AgentShare&>)
    kind.make_share = [](const Values& v, std::uint64_t seed, std::uint32_t replicate,
                         const AgentShare& share) {
      return std::make_unique<P>(P::params().read(v), seed, replicate, share);
    };
  return kind;
}

const std::vector<ProblemKind>& problem_kinds();
const ProblemKind& problem_kind(
    std::string_view name);  // BadInput if there is none, with a suggestion
// A problem of one's own, from then on known everywhere, in place of one of the same name.
void add_problem_kind(ProblemKind kind);

}  // namespace affpcl
