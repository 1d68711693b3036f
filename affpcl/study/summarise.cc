#include "affpcl/study/summarise.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace affpcl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Nominal, for all agents of a method together. The limit lies in a tail where the statistic of few
// skewed numbers is up to three times as likely as a normal one, so the true rate is below 1 %.
constexpr double kFalseAlarms = 0.001;
constexpr Estimate kNoEstimate{kNone, kNone, kNone, kNone};
// What the method knows of its agents, over all replicates.
void conclude(const MethodSpec& method, std::size_t m,
              const std::vector<const Replicate*>& replicates, MethodResult& result) {
  const std::unique_ptr<Method> made = method_kind(method.kind).make(method.values);
  const std::vector<Tally> kinds = made->tallies();
  result.columns = made->columns();
  std::vector<double> tallies(kinds.size());
  const double limit = normal_limit(kFalseAlarms / static_cast<double>(result.agents.size()));
  for (std::size_t i = 0; i < result.agents.size(); ++i) {
    for (std::size_t t = 0; t < kinds.size(); ++t) {
      tallies[t] = 0;
      for (const Replicate* r : replicates) {
        const double x = r->records[m].tallies[t][i];
        tallies[t] = kinds[t] == Tally::kSum ? tallies[t] + x : std::max(tallies[t], x);
      }
    }
    std::vector<double>& columns = result.agents[i].columns;
    columns.resize(result.columns.size());
    made->conclude(tallies, columns);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (result.columns[c] != "drift_z" || !(columns[c] > limit)) continue;
      result.alarm.agents.push_back(static_cast<std::int64_t>(i));
      result.alarm.largest = std::max(result.alarm.largest, columns[c]);
    }
  }
}

}  // namespace

SettingResult summarise(const Setting& setting, const Described& described,
                        const std::vector<Replicate>& replicates) {
  const Spec& spec = setting.spec;
  SettingResult out;
  out.at = setting.at;
  out.agent_names = described.agents;
  out.unknown_names = described.unknowns;
  std::vector<const Replicate*> chosen;
  for (const Replicate& r : replicates)
    if (!r.records.empty() && r.steps == spec.run.steps) chosen.push_back(&r);
  if (chosen.empty())
    for (const Replicate& r : replicates)
      if (!r.records.empty() && r.steps > 0) chosen.push_back(&r);
  if (chosen.empty()) return out;
  out.steps = spec.run.steps;
  for (const Replicate* r : chosen) out.steps = std::min(out.steps, r->steps);
  out.replicates = static_cast<std::int64_t>(chosen.size());

  const std::size_t methods = spec.methods.size();
  std::vector<std::int64_t> diverged(methods, 0);
  std::vector<const Replicate*> used;
  for (const Replicate* r : chosen) {
    bool clean = true;
    for (std::size_t m = 0; m < methods; ++m)
      if (r->records[m].diverged_at >= 0) ++diverged[m], clean = false;
    if (clean) used.push_back(r);
  }
  out.used = static_cast<std::int64_t>(used.size());
  for (const Replicate* r : used) out.numbers.push_back(r->number);
  for (std::size_t i = 0; i < chosen.front()->distance.size(); ++i) {
    double sum = 0;
    for (const Replicate* r : chosen) sum += r->distance[i];
    out.distance.push_back(sum / static_cast<double>(chosen.size()));
  }
  std::size_t alone = methods;
  for (std::size_t m = 0; m < methods; ++m) {
    out.diverged.emplace_back(spec.methods[m].name, diverged[m]);
    if (alone == methods && spec.methods[m].kind == "independent") alone = m;
  }

  const auto over = [&](auto&& of) {
    std::vector<double> values(used.size());
    std::transform(used.begin(), used.end(), values.begin(),
                   [&](const Replicate* r) { return of(*r); });
    return values;
  };
  const auto against = [&](auto&& of, std::size_t m) {
    return alone == methods
               ? kNoEstimate
               : ratio_of_means(over([&](const Replicate& r) { return of(r.records[m]); }),
                                over([&](const Replicate& r) { return of(r.records[alone]); }));
  };

  for (std::size_t m = 0; m < methods; ++m) {
    MethodResult result;
    result.name = spec.methods[m].name;
    result.kind = spec.methods[m].kind;
    result.batch = spec.methods[m].batch;
    const auto tail = [](const Record& r) { return r.mse; };
    result.by_replicate = over([&](const Replicate& r) { return tail(r.records[m]); });
    result.mse = estimate(result.by_replicate);
    result.vs_independent = against(tail, m);
    result.central_x = mean(over([&](const Replicate& r) { return r.records[m].central_x; }));
    result.central_theta =
        mean(over([&](const Replicate& r) { return r.records[m].central_theta; }));
    const std::size_t n = chosen.front()->records[m].agent_mse.size();
    for (std::size_t i = 0; i < n; ++i) {
      const auto agent = [i](const Record& r) { return r.agent_mse[i]; };
      result.agents.push_back(
          {estimate(over([&](const Replicate& r) { return agent(r.records[m]); })),
           against(agent, m),
           {}});
    }
    for (std::size_t e = 0; e < chosen.front()->records[m].more.size(); ++e) {
      const auto error = [e](const Record& r) { return r.more[e]; };
      result.errors.push_back(
          {described.errors[e],
           estimate(over([&](const Replicate& r) { return error(r.records[m]); })),
           against(error, m)});
    }
    conclude(spec.methods[m], m, chosen, result);
    result.solution.assign(chosen.front()->records[m].solution.size(), 0.0);
    for (std::size_t j = 0; j < result.solution.size(); ++j)
      result.solution[j] = mean(over([&](const Replicate& r) { return r.records[m].solution[j]; }));
    if (!used.empty()) {
      const std::vector<std::int64_t>& agents = described.curve_agents;
      for (std::size_t which = 0; which <= agents.size(); ++which) {
        Curve curve;
        curve.agent = which == 0 ? -1 : agents[which - 1];
        const auto points = [&](const Record& r) -> const std::vector<double>& {
          return which == 0 ? r.curve : r.agents[which - 1];
        };
        for (std::size_t t = 0; t < used.front()->records[m].steps.size(); ++t) {
          if (used.front()->records[m].steps[t] > static_cast<double>(out.steps)) break;
          curve.steps.push_back(used.front()->records[m].steps[t]);
          std::vector<double> values =
              over([&](const Replicate& r) { return points(r.records[m])[t]; });
          curve.mse.push_back(estimate(values));
          if (which == 0) curve.by_replicate.push_back(std::move(values));
        }
        result.curves.push_back(std::move(curve));
      }
    }
    result.sent = chosen.front()->records[m].sent;
    result.published = chosen.front()->records[m].published;
    for (const Replicate* r : chosen) result.seconds += r->records[m].seconds;
    out.methods.push_back(std::move(result));
  }
  return out;
}

}  // namespace affpcl
