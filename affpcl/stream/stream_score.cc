#include "affpcl/stream/stream_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "affpcl/runtime/collectives.h"

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

Leaves own_agents(const Run& run, std::size_t agents) {
  const auto n = static_cast<std::int64_t>(agents);
  return {std::min(n, run.first_block() * kLanes), std::min(n, run.last_block() * kLanes)};
}

void gather_scores(Leaves own, Processes& processes, std::vector<StreamScore>& scores) {
  if (processes.count() == 1) return;
  static_assert(std::is_trivially_copyable_v<StreamScore>);
  const std::span<const StreamScore> mine = std::span(scores).subspan(
      static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count()));
  std::vector<StreamScore> all;
  processes.gather(std::as_bytes(mine), [&](std::span<const std::byte> theirs) {
    const std::size_t had = all.size();
    all.resize(had + theirs.size() / sizeof(StreamScore));
    if (!theirs.empty())
      std::memcpy(static_cast<void*>(all.data() + had), theirs.data(), theirs.size());
  });
  if (processes.first()) scores = std::move(all);
}

Solutions::Solutions(const Run& run, std::size_t agents, Processes& processes)
    : d_(static_cast<std::size_t>(run.dimension())) {
  const Leaves own = own_agents(run, agents);
  for (const Kind kind : {Kind::kPersonalised, Kind::kIndependent}) {
    const auto method = static_cast<std::size_t>(kind);
    std::vector<double> mine;
    mine.reserve(static_cast<std::size_t>(own.count()) * d_);
    for (std::int64_t i = own.first; i < own.last; ++i)
      for (int r = 0; r < run.dimension(); ++r) mine.push_back(run.solution(method, i, r));
    gather(processes, mine, [&](std::span<const double> theirs) {
      x_[method].insert(x_[method].end(), theirs.begin(), theirs.end());
    });
  }
  const auto pooled = static_cast<std::size_t>(Kind::kPooled);
  x_[pooled].assign(run.central_x(pooled).p, run.central_x(pooled).p + d_);
}

std::vector<double> Solutions::operator()(Kind kind, std::size_t agent) const {
  const std::vector<double>& all = x_[static_cast<std::size_t>(kind)];
  const auto first =
      all.begin() + static_cast<std::ptrdiff_t>(kind == Kind::kPooled ? 0 : agent * d_);
  return {first, first + static_cast<std::ptrdiff_t>(d_)};
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
