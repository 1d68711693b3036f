#include "affpcl/study/summarise.h"

#include <algorithm>
#include <cmath>
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

// The columns that the method reports of its agents, over all replicates.
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
      if (result.columns[c] != "drift_z") continue;
      if (std::isnan(columns[c])) result.alarm.too_short = true;
      if (!(columns[c] > limit)) continue;
      result.alarm.agents.push_back(static_cast<std::int64_t>(i));
      result.alarm.largest = std::max(result.alarm.largest, columns[c]);
    }
  }
}

using Replicates = std::vector<const Replicate*>;

// The replicates that are whole; where there is none, all that were begun.
Replicates begun(const std::vector<Replicate>& replicates, std::int64_t steps) {
  Replicates chosen;
  for (const Replicate& r : replicates)
    if (!r.records.empty() && r.steps == steps) chosen.push_back(&r);
  if (chosen.empty())
    for (const Replicate& r : replicates)
      if (!r.records.empty() && r.steps > 0) chosen.push_back(&r);
  return chosen;
}

// Mean over replicates of each agent's distance to the centre.
std::vector<double> mean_distance(const Replicates& replicates) {
  std::vector<double> mean;
  for (std::size_t i = 0; i < replicates.front()->distance.size(); ++i) {
    double sum = 0;
    for (const Replicate* r : replicates) sum += r->distance[i];
    mean.push_back(sum / static_cast<double>(replicates.size()));
  }
  return mean;
}

// Summarises the methods of one setting, each against the independent baseline.
class MethodSummary {
 public:
  // shown: the methods that have results; `used` are replicates in which none of them diverged.
  MethodSummary(const Spec& spec, const SettingShape& shape, const Replicates& chosen,
                const Replicates& used, const std::vector<bool>& shown, std::int64_t steps)
      : spec_(spec), shape_(shape), chosen_(chosen), used_(used), shown_(shown), steps_(steps) {
    independent_ = 0;
    while (independent_ < spec.methods.size() && spec.methods[independent_].kind != "independent")
      ++independent_;
  }

  MethodResult operator()(std::size_t m) const {
    const MethodSpec& method = spec_.methods[m];
    const Record& first = chosen_.front()->records[m];
    MethodResult result;
    result.name = method.name;
    result.kind = method.kind;
    result.batch = method.batch;
    const auto tail = [](const Record& r) { return r.mse; };
    result.by_replicate = over(m, tail);
    result.mse = estimate(result.by_replicate);
    result.vs_independent = against(m, tail);
    result.central_x = mean(over(m, [](const Record& r) { return r.central_x; }));
    result.central_theta = mean(over(m, [](const Record& r) { return r.central_theta; }));
    result.agents.reserve(first.agent_mse.size());
    for (std::size_t i = 0; i < first.agent_mse.size(); ++i) {
      const auto agent = [i](const Record& r) { return r.agent_mse[i]; };
      result.agents.push_back(
          {.mse = estimate(over(m, agent)), .vs_independent = against(m, agent)});
    }
    for (std::size_t e = 0; e < first.more.size(); ++e) {
      const auto error = [e](const Record& r) { return r.more[e]; };
      result.errors.push_back({shape_.errors[e], estimate(over(m, error)), against(m, error)});
    }
    conclude(method, m, chosen_, result);
    for (std::size_t j = 0; j < first.solution.size(); ++j)
      result.solution.push_back(mean(over(m, [j](const Record& r) { return r.solution[j]; })));
    if (!used_.empty() && shown_[m])
      for (std::size_t which = 0; which <= shape_.curve_agents.size(); ++which)
        result.curves.push_back(curve(m, which));
    result.sent = first.sent;
    result.present = first.present;
    result.up = first.present * first.up;
    result.down = first.present * first.down;
    result.published = first.published;
    for (const Replicate* r : chosen_) result.seconds += r->records[m].seconds;
    return result;
  }

 private:
  // of(record) of method m, by replicate.
  template <class Of>
  std::vector<double> over(std::size_t m, Of of) const {
    std::vector<double> values;
    if (!shown_[m]) return values;
    for (const Replicate* r : used_) values.push_back(of(r->records[m]));
    return values;
  }
  template <class Of>
  Estimate against(std::size_t m, Of of) const {
    if (independent_ == spec_.methods.size() || !shown_[independent_] || !shown_[m])
      return kNoEstimate;
    return ratio_of_means(over(m, of), over(independent_, of));
  }
  // The curve of the average, which = 0, or of a curve agent.
  Curve curve(std::size_t m, std::size_t which) const {
    Curve curve;
    curve.agent = which == 0 ? -1 : shape_.curve_agents[which - 1];
    for (std::size_t t = 0; t < used_.front()->records[m].steps.size(); ++t) {
      const double step = used_.front()->records[m].steps[t];
      if (step > static_cast<double>(steps_)) break;
      std::vector<double> values = over(m, [which, t](const Record& r) {
        return which == 0 ? r.curve[t] : r.agents[which - 1][t];
      });
      curve.steps.push_back(step);
      curve.mse.push_back(estimate(values));
      if (which == 0) curve.by_replicate.push_back(std::move(values));
    }
    return curve;
  }

  const Spec& spec_;
  const SettingShape& shape_;
  const Replicates &chosen_, &used_;
  const std::vector<bool>& shown_;
  std::int64_t steps_;
  std::size_t independent_ = 0;  // the first such method; their number where there is none
};

// The replicates in which none of the shown methods diverged.
Replicates clean(const Replicates& replicates, const std::vector<bool>& shown) {
  Replicates out;
  for (const Replicate* r : replicates) {
    bool diverged = false;
    for (std::size_t m = 0; m < shown.size(); ++m)
      diverged = diverged || (shown[m] && r->records[m].diverged_at >= 0);
    if (!diverged) out.push_back(r);
  }
  return out;
}

// No method is shown beside others that it was not compared with in the same replicates. Where
// every replicate has a method that diverged, those that diverged most often are left out, until
// the rest have replicates in common.
Replicates choose_used(const Replicates& chosen, const SettingResult& result,
                       std::vector<bool>& shown) {
  Replicates used = clean(chosen, shown);
  while (used.empty()) {
    std::int64_t most = 0;
    for (std::size_t m = 0; m < shown.size(); ++m)
      if (shown[m]) most = std::max(most, result.diverged[m].second);
    if (most == 0) break;
    for (std::size_t m = 0; m < shown.size(); ++m)
      if (result.diverged[m].second == most) shown[m] = false;
    if (std::find(shown.begin(), shown.end(), true) == shown.end()) break;
    used = clean(chosen, shown);
  }
  return used;
}

}  // namespace

SettingResult summarise(const Setting& setting, const SettingShape& shape,
                        const std::vector<Replicate>& replicates) {
  const Spec& spec = setting.spec;
  SettingResult out;
  out.at = setting.at;
  out.agent_names = shape.agent_names;
  out.unknown_names = shape.unknown_names;
  const Replicates chosen = begun(replicates, spec.run.steps);
  if (chosen.empty()) return out;
  out.steps = spec.run.steps;
  for (const Replicate* r : chosen) out.steps = std::min(out.steps, r->steps);
  out.replicates = std::ssize(chosen);
  out.distance = mean_distance(chosen);

  const std::size_t methods = spec.methods.size();
  for (const MethodSpec& m : spec.methods) out.diverged.emplace_back(m.name, 0);
  for (const Replicate* r : chosen)
    for (std::size_t m = 0; m < methods; ++m)
      out.diverged[m].second += r->records[m].diverged_at >= 0;
  std::vector<bool> shown(methods, true);
  const Replicates used = choose_used(chosen, out, shown);
  out.used = std::ssize(used);
  for (const Replicate* r : used) out.numbers.push_back(r->number);

  const MethodSummary summary(spec, shape, chosen, used, shown, out.steps);
  for (std::size_t m = 0; m < methods; ++m) out.methods.push_back(summary(m));
  return out;
}

}  // namespace affpcl
