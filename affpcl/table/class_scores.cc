#include "affpcl/table/class_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/runtime/collectives.h"
#include "affpcl/table/agent_sum.h"
#include "affpcl/table/frame.h"

namespace affpcl {
namespace {

constexpr std::size_t kPerBin = 2, kPerCalibrationBin = 3;

// The bin of a number among `count` in [0, 1]; whatever lies outside is in the first or the last.
std::size_t bin_of(double at, std::size_t count) {
  if (!(at > 0)) return 0;
  return at < 1 ? static_cast<std::size_t>(at * static_cast<double>(count)) : count - 1;
}

std::size_t logit_bin(double p) {
  const double logit = std::log(p / (1 - p));
  return bin_of((logit / ClassCounts::kFarthest + 1) / 2, ClassCounts::kBins);
}

}  // namespace

double brier_score(std::span<const double> p, std::size_t truth) {
  if (p.size() == 2) return std::pow(p[1] - static_cast<double>(truth), 2);
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) sum += std::pow(p[k] - (k == truth ? 1 : 0), 2);
  return sum;
}

double ClassCounts::unit_of(double total) {
  return std::ldexp(1, static_cast<int>(std::ceil(std::log2(std::max(total, 1.0)))) - 51);
}

ClassCounts::ClassCounts(std::size_t classes, double unit)
    : classes_(classes),
      unit_(unit),
      numbers_(calibrated_from() + kCalibrationBins * kPerCalibrationBin + confused()) {}

double ClassCounts::rounded(double v) const { return std::round(v / unit_) * unit_; }

void ClassCounts::add(std::span<const double> p, std::size_t truth, double weight) {
  const double w = rounded(weight);
  for (std::size_t k = 0; k < curves(); ++k) {
    const std::size_t of = classes_ == 2 ? 1 : k;
    numbers_[(k * kBins + logit_bin(p[of])) * kPerBin + (truth == of ? 0 : 1)] += w;
  }
  const auto top = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  const std::size_t shown = classes_ == 2 ? 1 : top;
  const std::size_t bin = bin_of(p[shown], kCalibrationBins);
  double* const to = numbers_.data() + calibrated_from() + bin * kPerCalibrationBin;
  to[0] += w, to[1] += rounded(weight * p[shown]), to[2] += truth == shown ? w : 0;
  if (confused() > 0) numbers_[numbers_.size() - confused() + truth * classes_ + top] += w;
}

ClassCounts::Auc ClassCounts::curve() const {
  double sum = 0, error = 0, found = 0;
  for (std::size_t k = 0; k < curves(); ++k) {
    const double* const bins = numbers_.data() + k * kBins * kPerBin;
    double rest = 0, above = 0, tied = 0, own = 0;  // pairs of a row of the class and another one
    for (std::size_t b = 0; b < kBins; ++b) {
      const double in = bins[b * kPerBin], out = bins[b * kPerBin + 1];
      above += in * rest, tied += in * out;
      own += in, rest += out;
    }
    if (!(own * rest > 0)) continue;
    sum += (above + tied / 2) / (own * rest), error += tied / 2 / (own * rest), found += 1;
  }
  if (found == 0) return {std::numeric_limits<double>::quiet_NaN(), 0};
  return {sum / found, error / found};
}

double ClassCounts::auc() const { return curve().value; }
double ClassCounts::auc_error() const { return curve().error; }

std::vector<CalibrationBin> ClassCounts::calibration() const {
  const double* const bins = numbers_.data() + calibrated_from();
  double all = 0;
  for (std::size_t b = 0; b < kCalibrationBins; ++b) all += bins[b * kPerCalibrationBin];
  std::vector<CalibrationBin> found;
  for (std::size_t b = 0; b < kCalibrationBins; ++b) {
    const double* const of = bins + b * kPerCalibrationBin;
    if (of[0] > 0) found.push_back({of[0] / all, of[1] / of[0], of[2] / of[0]});
  }
  return found;
}

std::vector<double> ClassCounts::confusion() const {
  return {numbers_.end() - static_cast<std::ptrdiff_t>(confused()), numbers_.end()};
}

double ClassCounts::calibration_error() const {
  double sum = 0;
  for (const CalibrationBin& b : calibration()) sum += b.share * std::abs(b.predicted - b.observed);
  return sum;
}

ClassTally::ClassTally(const Frame& frame, int repeats, Team& team)
    : frame_(frame),
      classes_(frame.encoding.classes.size()),
      models_(static_cast<std::size_t>(team.workers())) {
  if (classes_ == 0) return;
  AgentSum sum("weight of the rows", 1, frame.agents.size(), team);
  const double total = *sum([&](std::size_t i, double* out) {
    for (std::size_t r = frame.begin(i, 0); r < frame.begin(i + 1, 0); ++r) *out += frame.weight(r);
    const auto [from, to] = frame.test_rows(i);
    for (std::size_t r = from; r < to; ++r) *out += frame.weight(r);
  });
  unit_ = ClassCounts::unit_of(total * repeats);
}

void ClassTally::add(int worker, std::size_t model, std::span<const double> p, std::size_t row) {
  std::vector<ClassCounts>& own = models_[static_cast<std::size_t>(worker)];
  if (own.empty()) own.assign(kModels, ClassCounts(classes_, unit_));
  own[model].add(p, static_cast<std::size_t>(frame_.classes[row]), frame_.weight(row));
}

ClassScores ClassTally::scores(std::size_t chosen, Team& team) {
  ClassScores scores;
  if (!counts()) return scores;
  std::vector<ClassCounts> all(kModels, ClassCounts(classes_, unit_));
  for (std::size_t m = 0; m < kModels; ++m) {
    const std::span<double> to = all[m].numbers();
    for (std::vector<ClassCounts>& worker : models_)
      for (std::size_t k = 0; k < to.size() && !worker.empty(); ++k)
        to[k] += worker[m].numbers()[k];
    sum(team.processes(), to);
  }
  const auto each = [&](double (ClassCounts::*of)() const) {
    return Losses{(all[chosen].*of)(), (all[1].*of)(), (all[2].*of)(), (all[3].*of)()};
  };
  scores.auc = each(&ClassCounts::auc);
  scores.calibration_error = each(&ClassCounts::calibration_error);
  scores.calibration = all[chosen].calibration();
  scores.confusion = all[chosen].confusion();
  return scores;
}

}  // namespace affpcl
