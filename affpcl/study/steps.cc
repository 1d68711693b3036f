// From a rule in the spec to the step sizes of every module and agent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/problem.h"
#include "affpcl/study/spec.h"

namespace affpcl {
namespace {

bool relative(const StepRule& rule) { return rule.kind != Schedule::Kind::kConstant; }

// The lambdas, all positive; computed only where a rule needs them.
Monotonicity positive_lambdas(const Problem& problem) {
  if (problem.means() == nullptr)
    throw BadInput(
        "a relative step_size schedule needs lambda, which this problem does not have; give a "
        "number");
  Monotonicity m = monotonicity(problem);
  for (std::size_t i = 0; i < m.agents.size(); ++i)
    if (m.agents[i] <= 0)
      throw BadInput(
          fmt::format("a relative step_size schedule needs lambda > 0, but agent {} has {:.3g}", i,
                      m.agents[i]));
  if (m.central <= 0 || (problem.shape().k > 0 && m.objective <= 0))
    throw BadInput(
        fmt::format("a relative step_size schedule needs lambda > 0, but the centre has {:.3g} and "
                    "its objective {:.3g}",
                    m.central, m.objective));
  return m;
}

// Where a module's first step must stay below lambda / bound (lem:local, lem:central,
// lem:objective-k-het; the last is stated for |Phi| <= 1), the least t0 with 4 / (t0 + 1) factor
// below that.
double least_t0(double factor, double lambda, double bound) {
  return std::max(1.0, std::ceil(4 * factor * bound / lambda - 1));
}

}  // namespace

StepSizes step_sizes(const Spec& spec, const MethodSpec& method, const Problem& problem) {
  const StepRule main = method.step_size.value_or(spec.step_size);
  const StepRule central = spec.step_size_central.value_or(main);
  const StepRule objective = spec.step_size_objective.value_or(main);
  const StepRule ratio = spec.step_size_ratio.value_or(main);
  const bool has_Phi = problem.shape().k > 0;

  StepSizes step;
  const auto schedule = [&](const StepRule& rule) {
    return Schedule{
        .kind = rule.kind, .value = rule.value, .horizon = spec.run.steps, .t0 = rule.t0};
  };
  step.agent.schedule = schedule(main);
  step.central.schedule = schedule(central);
  step.objective.schedule = schedule(objective);
  step.ratio.schedule = schedule(ratio);
  if (!relative(main) && !relative(central) && !relative(objective)) {
    if (relative(ratio)) step.ratio.schedule.t0 = std::max(1.0, ratio.t0);
    return step;
  }

  const Monotonicity lambda = positive_lambdas(problem);
  double least =
      std::min(lambda.central, *std::min_element(lambda.agents.begin(), lambda.agents.end()));
  if (has_Phi) least = std::min(least, lambda.objective);
  const auto factor = [&](const StepRule& rule, double own) {
    return !relative(rule) ? 1.0 : 1 / (rule.per_agent ? own : least);
  };
  step.central.factor = factor(central, lambda.central);
  if (has_Phi) step.objective.factor = factor(objective, lambda.objective);
  if (relative(main) && main.per_agent) {
    for (double own : lambda.agents) step.agent_factors.push_back(1 / own);
  } else {
    step.agent.factor = factor(main, least);
  }

  // t0 is common to the modules that follow the run's rule; a module with its own rule has its own.
  const auto asks = [](const StepRule& rule) {
    return rule.kind == Schedule::Kind::kDiminishing && rule.t0 < 0;
  };
  if (asks(main) || asks(central) || asks(objective)) {
    const double GA = problem.means()->G_A(), GPhi = has_Phi ? problem.means()->G_Phi() : 1;
    if (GA == 0 || GPhi == 0)
      throw BadInput(
          "a diminishing step_size schedule needs a bound on the noise, which this problem does "
          "not have; give t0");
    const double GA2 = GA * GA, GPhi2 = has_Phi ? std::max(1.0, GPhi * GPhi) : 1;
    double agents_t0 = 1;
    for (std::size_t i = 0; i < lambda.agents.size(); ++i)
      agents_t0 =
          std::max(agents_t0, least_t0(factor(main, lambda.agents[i]), lambda.agents[i], 40 * GA2));
    const double central_t0 = least_t0(step.central.factor, lambda.central, 8 * GA2);
    const double objective_t0 =
        has_Phi ? least_t0(step.objective.factor, lambda.objective, 4 * GPhi2) : 1;
    double common = agents_t0;
    if (!spec.step_size_central) common = std::max(common, central_t0);
    if (!spec.step_size_objective) common = std::max(common, objective_t0);
    if (asks(main)) step.agent.schedule.t0 = common;
    if (asks(central)) step.central.schedule.t0 = spec.step_size_central ? central_t0 : common;
    if (asks(objective))
      step.objective.schedule.t0 = spec.step_size_objective ? objective_t0 : common;
  }
  step.ratio.schedule.t0 = ratio.t0 > 0 ? ratio.t0 : std::max(1.0, step.agent.schedule.t0);
  return step;
}

}  // namespace affpcl
