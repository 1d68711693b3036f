#include "affpcl/study/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/problem/catalogue.h"
#include "affpcl/runtime/team_share.h"
#include "affpcl/study/limits.h"
#include "affpcl/study/schedule.h"

namespace affpcl {
namespace {

RunMethod make_method(const Spec& spec, const MethodSpec& m, const Problem& problem) {
  try {
    return {.name = m.name,
            .method = method_kind(m.kind).make(m.values),
            .period = m.period,
            .batch = m.batch,
            .step = step_sizes(spec, m, problem),
            .last = m.last,
            .compress = m.compress,
            .sum = m.sum};
  } catch (const BadInput& e) {
    throw BadInput(fmt::format("method '{}': {}", m.name, e.marked()));
  }
}

}  // namespace

std::unique_ptr<Problem> make_problem(const Spec& spec, std::uint32_t number,
                                      const AgentShare& share) {
  const ProblemKind& kind = problem_kind(spec.problem_kind);
  const std::uint32_t system = spec.redraw_system ? number : 0;
  return kind.make_share ? kind.make_share(spec.problem, spec.run.seed, system, share)
                         : kind.make(spec.problem, spec.run.seed, system);
}

std::vector<std::int64_t> curve_agents(const Spec& spec, std::int64_t n) {
  std::vector<std::int64_t> agents = spec.run.curve_agents;
  for (std::int64_t& a : agents) {
    if (a >= n || a < -n)
      throw BadInput(fmt::format("run.curve_agents holds {}, but there are {} agents", a, n));
    if (a < 0) a += n;
  }
  std::sort(agents.begin(), agents.end());
  agents.erase(std::unique(agents.begin(), agents.end()), agents.end());
  return agents;
}

SettingShape shape_of(const Spec& spec, const Problem& problem) {
  const Shape shape = problem.shape();
  const Truth* truth = problem.truth();
  const auto [scores, names] = std::pair(problem.facets().scores, problem.facets().names);
  return {.agents = shape.agents,
          .d = shape.d,
          .truth = truth != nullptr,
          .centre = truth != nullptr && !truth->xc.empty(),
          .curve_agents = curve_agents(spec, shape.agents),
          .errors = scores != nullptr ? scores->more_errors() : std::vector<std::string>{},
          .agent_names = names != nullptr ? names->agents : std::vector<std::string>{},
          .unknown_names = names != nullptr ? names->unknowns : std::vector<std::string>{}};
}

Replica make_replica(const Spec& spec, std::uint32_t number, Team& team) {
  refuse_too_large(spec);
  return make_replica(spec, number, team, make_problem(spec, number, TeamShare(team)));
}

Replica make_replica(const Spec& spec, std::uint32_t number, Team& team,
                     std::unique_ptr<Problem> problem) {
  Replica r;
  r.problem = std::move(problem);
  RunOptions options = spec.run;
  options.replicate = number;
  if (!spec.schedule.empty()) options.schedule = read_schedule(spec.schedule, *r.problem);
  options.curve_agents = curve_agents(spec, r.problem->shape().agents);
  std::vector<RunMethod> methods;
  for (const MethodSpec& m : spec.methods) methods.push_back(make_method(spec, m, *r.problem));
  r.run = std::make_unique<Run>(*r.problem, std::move(methods), std::move(options), team);
  return r;
}

}  // namespace affpcl
