// What a run has found so far, by method and agent.
#include <algorithm>
#include <cmath>

#include "affpcl/runtime/collectives.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

constexpr Field kOneRow{0, 1};

}  // namespace

template <class F>
std::vector<double> Run::by_agent(int rows, F write) {
  std::vector<double> mine, all;
  if (rows == 0) return all;
  const auto per_block = static_cast<std::size_t>(rows) * kLanes;
  mine.reserve(static_cast<std::size_t>(last_block_ - first_block_) * per_block);
  for (std::int64_t b = first_block_; b < last_block_; ++b) {
    team_.scratch(0).clear();
    const Out out = team_.scratch(0).rows(rows);
    write(b, out);
    each_lane(own(lanes_of(b, shape_.agents)), [&](int l) {
      for (int r = 0; r < rows; ++r) mine.push_back(out.row(r)[l]);
    });
  }
  if (team_.processes().count() == 1) return mine;
  if (team_.processes().first() && some_ == nullptr)
    all.reserve(static_cast<std::size_t>(blocks_of(shape_.agents)) * per_block);
  gather(team_.processes(), mine, [&](std::span<const double> numbers) {
    all.insert(all.end(), numbers.begin(), numbers.end());
  });
  return all;
}

const std::vector<Record>& Run::finish() {
  records_.clear();
  for (const Member& m : members_) {
    Record r = m.record;
    const double count = m.progress[kTailCount];
    r.diverged_at =
        m.progress[kDivergedAt] > 0 ? static_cast<std::int64_t>(m.progress[kDivergedAt]) : -1;
    r.seconds = m.progress[kSeconds];
    r.present = share_present(m.plan.period);
    // A run that was stopped before its tail shows where it stood.
    r.mse = count > 0         ? m.progress[kTailSum] / count
            : r.curve.empty() ? std::nan("")
                              : r.curve.back();
    r.central_x = m.progress[kTailX] / count;
    r.central_theta = m.progress[kTailTheta] / count;
    const Store& errors = count > 0 ? m.tail : m.error;
    r.agent_mse = by_agent(1, [&](std::int64_t b, Out rows) {
      for (int l = 0; l < kLanes; ++l)
        rows.p[l] = problem_.truth() == nullptr
                        ? std::nan("")
                        : errors.block(b)[kOneRow].p[l] / std::max(count, 1.0);
    });
    if (facets_.names != nullptr)
      r.solution = by_agent(shape_.d, [&](std::int64_t b, Out rows) { copy(scored(m, b), rows); });
    // Without a truth there is no error to watch: diverged is what is not finite at the end.
    if (problem_.truth() == nullptr) {
      const bool lost = !std::all_of(r.solution.begin(), r.solution.end(),
                                     [](double x) { return std::isfinite(x); });
      if (some_ != nullptr ? team_.processes().any(lost) : lost) r.diverged_at = step_;
    }
    const std::vector<double> more = by_agent(more_, [&](std::int64_t b, Out rows) {
      copy(m.more.block(b)[{0, more_}], rows);
    });
    for (int e = 0; e < more_; ++e) {
      double sum = 0;
      for (std::size_t i = static_cast<std::size_t>(e); i < more.size();
           i += static_cast<std::size_t>(more_))
        sum += more[i];
      r.more.push_back(sum / (count * static_cast<double>(shape_.agents)));
    }
    // One after the other: rank 0 has those of all agents, beside its run.
    const auto tallies = static_cast<int>(m.plan.method->tallies().size());
    for (int tally = 0; tally < tallies; ++tally)
      r.tallies.push_back(by_agent(1, [&](std::int64_t b, Out row) {
        const Out rows = team_.scratch(0).rows(tallies);
        m.plan.method->report(m.agents.block(b), rows);
        copy({rows.row(tally), 1}, row);
      }));
    records_.push_back(std::move(r));
  }
  return records_;
}

}  // namespace affpcl
