// From a rule in the spec to the step sizes of every module and agent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/problem/problem.h"
#include "affpcl/problem/some_agents.h"
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

// The largest step with which z -= step (M z - v) does not diverge, for the mean M of all agents'
// maps; apply(lanes, z, Mz) gives theirs, up to a constant. 0: it was not computed, for `bound` on
// |M| already makes `step` safe, or it is too much work.
template <class Apply>
double mean_limit(const Problem& problem, Sums sums, int rows, double bound, double step,
                  Apply apply) {
  constexpr std::int64_t kMostWork = 1'000'000;
  const std::int64_t n = problem.shape().agents;
  if (rows == 0 || (bound > 0 && step * bound < 2) || n * rows * rows > kMostWork) return 0;
  const auto k = static_cast<std::size_t>(rows);
  Matrix M(k, k);
  Buffer space(2 * k * kLanes);
  const Out at_zero{space.data(), rows}, at_unit{space.data() + k * kLanes, rows};
  std::vector<double> z(k);
  const SomeAgents* some = some_agents(problem);
  std::vector<Fixed> exact(sums == Sums::kFixed ? k * k + 1 : 0);  // M, and how many do not fit
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    apply(lanes, In{z.data(), rows, 1}, at_zero);
    for (std::size_t c = 0; c < k; ++c) {
      z[c] = 1;
      apply(lanes, In{z.data(), rows, 1}, at_unit);
      z[c] = 0;
      for (int r = 0; r < rows; ++r)
        for (int l = 0; l < lanes.count; ++l) {
          if (some != nullptr && !some->has(lanes.first + l)) continue;
          const double part = (at_unit.row(r)[l] - at_zero.row(r)[l]) / static_cast<double>(n);
          const auto row = static_cast<std::size_t>(r);
          if (exact.empty())
            M(row, c) += part;
          else if (std::abs(part) < kLargestFixed)
            exact[row * k + c] += to_fixed(part);
          else
            exact[k * k] += to_fixed(1);
        }
    }
  }
  if (!exact.empty()) {
    if (some != nullptr) some->sum_sites(exact);
    if (exact[k * k] != Fixed{}) return 0;
    std::transform(exact.begin(), exact.end() - 1, M.all().begin(), to_double);
  }
  const double radius = spectral_radius(M);
  return radius > 0 ? 2 / radius : 0;
}

// A constant central step that follows the agents' and with which the centre is sure to diverge becomes half
// of the largest with which its mean does not. One that the spec states stays.
void bound_central_steps(const Spec& spec, Sums sums, const Problem& problem, StepSizes& step) {
  const Means* means = problem.means();
  if (means == nullptr || step.agent.schedule.kind != Schedule::Kind::kConstant) return;
  const auto bound = [](StepSizes::Module& module, double limit) {
    const double step_size = module.at(0);
    if (limit > 0 && step_size >= limit) module.factor *= limit / 2 / step_size;
  };
  if (!spec.step_size_central)
    bound(step.central,
          mean_limit(problem, sums, problem.shape().d, means->G_A(), step.central.at(0),
                     [&](Lanes lanes, In z, Out to) { means->mean_apply(lanes, z, to); }));
  if (!spec.step_size_objective)
    bound(step.objective,
          mean_limit(problem, sums, problem.shape().k, means->G_Phi(), step.objective.at(0),
                     [&](Lanes lanes, In z, Out to) { means->mean_coe(lanes, z, to); }));
}

StepSizes requested_steps(const Spec& spec, const MethodSpec& method, const Problem& problem) {
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

}  // namespace

StepSizes step_sizes(const Spec& spec, const MethodSpec& method, const Problem& problem) {
  StepSizes step = requested_steps(spec, method, problem);
  if (method.kind == "affpcl") bound_central_steps(spec, method.sum, problem, step);
  return step;
}

}  // namespace affpcl
