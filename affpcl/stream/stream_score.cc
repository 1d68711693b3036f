#include "affpcl/stream/stream_score.h"

#include <fmt/format.h>

#include <cmath>

namespace affpcl {
namespace {

RunMethod make(const std::string& kind, const std::map<std::string, Value>& values,
               const StepSizes& step) {
  const MethodKind& k = method_kind(kind);
  return {kind, k.make(Values(k.params, values, "`method " + kind + "`")), 1, 1, step};
}

}  // namespace

std::vector<RunMethod> with_baselines(const std::string& method,
                                      const std::map<std::string, Value>& values,
                                      const StepSizes& step) {
  std::vector<RunMethod> methods;
  methods.push_back(make(method, values, step));
  methods.push_back(make("independent", {}, step));
  methods.push_back(make("fedavg", {}, step));
  return methods;
}

void Recent::add(double v) {
  now_.add(v);
  if (now_.n + before_.n < until_) return;
  before_ = now_, now_ = {}, until_ *= 2;
}

Paired Recent::all() const {
  return {before_.n + now_.n, before_.s1 + now_.s1, before_.s2 + now_.s2};
}

void StreamScore::add(const ByKind<RowLoss>& row, const RowLoss& middle, double y) {
  const RowLoss& chosen = row[static_cast<std::size_t>(kind)];
  tally.add({chosen, parabola(chosen, row[1], middle), row}, y);
  for (std::size_t m = 0; m < row.size(); ++m) losses[m].add(row[m].loss);
  than_independent.add(row[0].loss - row[1].loss);
  than_pooled.add(row[0].loss - row[2].loss);
  kind = supported(than_independent.all(), than_pooled.all());
}

void one_pass(std::int64_t steps, const FitRun& run, FunctionRef<void(std::int64_t)> step,
              Fitted& fitted) {
  std::int64_t t = 0;
  for (; t < steps && !run.stopped(); ++t) {
    step(t);
    run.report(static_cast<double>(t + 1) / static_cast<double>(steps));
  }
  fitted.scored = t > 0;
  fitted.complete = t == steps;
  if (!fitted.complete)
    fitted.notes.push_back(
        fmt::format("stopped after {} of at most {} rows of an agent", t, steps));
}

std::vector<RowTally> tallies(const std::vector<StreamScore>& scores) {
  std::vector<RowTally> all;
  for (const StreamScore& s : scores) {
    all.push_back(s.tally);
    all.back().in_hand = all.back().unsure = std::nan("");  // the gain is that of the whole stream
  }
  return all;
}

}  // namespace affpcl
