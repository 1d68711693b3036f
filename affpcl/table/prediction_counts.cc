#include "affpcl/table/prediction_counts.h"

#include <algorithm>
#include <cmath>

#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/frame.h"

namespace affpcl {
namespace {

constexpr std::size_t kGrid = PredictionTally::kCells * PredictionTally::kCells;
constexpr std::size_t kNumbers = kGrid + PredictionTally::kFine;

// The bin among `count` over [-1, 1]; whatever lies outside is in the first or the last.
std::size_t bin_of(double at, std::size_t count) {
  const double place = (at + 1) / 2 * static_cast<double>(count);
  if (!(place > 0)) return 0;
  return place < static_cast<double>(count) ? static_cast<std::size_t>(place) : count - 1;
}

}  // namespace

PredictionTally::PredictionTally(const Frame& frame, Team& team)
    : workers_(static_cast<std::size_t>(team.workers())) {
  const Encoding& e = frame.encoding;
  if (!e.classes.empty() || !frame.trials.empty() || e.family == Family::kBinomial ||
      team.processes().apart())
    return;
  AgentSum sum("mean and scatter of the target", 3, frame.agents.size(), team);
  const double* const found = sum([&](std::size_t i, double* out) {
    for (std::size_t r = frame.begin(i, 0); r < frame.begin(i + 1, 0); ++r) {
      const double y = frame.wanted(i, r) - frame.y_mean[0];
      out[0] += 1, out[1] += y, out[2] += y * y;
    }
  });
  if (!(found[0] > 1)) return;
  const double shift = found[1] / found[0];
  mean_ = frame.y_mean[0] + shift;
  sd_ = std::sqrt(std::max(0.0, found[2] / found[0] - shift * shift));
}

void PredictionTally::add(int worker, std::size_t model, double predicted, double found) {
  if (!std::isfinite(predicted)) return;
  std::vector<double>& own = workers_[static_cast<std::size_t>(worker)];
  if (own.empty()) own.assign(kModels * kNumbers, 0);
  const double reach = kFarthest * sd_;
  const auto cell = [&](double v) { return bin_of((v - mean_) / reach, kCells); };
  double* const to = own.data() + model * kNumbers;
  to[cell(predicted) * kCells + cell(found)] += 1;
  to[kGrid + bin_of((found - predicted) / reach, kFine)] += 1;
}

PredictionCounts PredictionTally::counted(std::size_t chosen, Team& team) const {
  PredictionCounts result;
  if (!counts()) return result;
  std::vector<double> all(kNumbers);
  for (const std::vector<double>& own : workers_)
    for (std::size_t k = 0; k < kNumbers && !own.empty(); ++k) all[k] += own[chosen * kNumbers + k];
  sum(team.processes(), all);
  const double reach = kFarthest * sd_;
  result.lo = mean_ - reach, result.hi = mean_ + reach;
  result.cells = kCells;
  result.grid.assign(all.begin(), all.begin() + kGrid);

  // Fine bins are joined so that about kBins of them hold all residuals but one in two hundred.
  const double* const fine = all.data() + kGrid;
  double rows = 0;
  for (std::size_t b = 0; b < kFine; ++b) rows += fine[b];
  std::size_t first = 0, last = kFine;
  for (double out = fine[0]; first + 1 < last && out <= rows / 400; out += fine[++first]) {
  }
  for (double out = fine[kFine - 1]; first + 1 < last && out <= rows / 400;
       out += fine[--last - 1]) {
  }
  const std::size_t joined = std::max<std::size_t>(1, (last - first + kBins - 1) / kBins);
  first = first / joined * joined;
  const std::size_t bins = (last - first + joined - 1) / joined;
  result.residuals.assign(bins, 0);
  for (std::size_t b = 0; b < kFine; ++b) {
    const std::size_t at = b < first ? 0 : std::min((b - first) / joined, bins - 1);
    result.residuals[at] += fine[b];
  }
  const double fine_width = 2 * reach / static_cast<double>(kFine);
  result.from = -reach + static_cast<double>(first) * fine_width;
  result.width = static_cast<double>(joined) * fine_width;
  return result;
}

}  // namespace affpcl
