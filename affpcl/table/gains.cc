#include "affpcl/table/gains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace affpcl {
namespace {

constexpr int kSteps = 300;
constexpr double kStill = 1e-7;
constexpr double kTrainedOn = 1.25;  // all rows over those outside a fold
constexpr std::array kPriorRows = {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0};

double normal_density(double x, double variance) {
  return std::exp(-x * x / (2 * variance)) / std::sqrt(2 * std::numbers::pi * variance);
}

// The posterior of one agent's error: a mixture of normals.
struct Mixture {
  std::array<double, kErrorComponents.size()> share, mean, variance;

  double below(double x) const {
    double p = 0;
    for (std::size_t k = 0; k < share.size(); ++k)
      p += share[k] * (variance[k] > 0 ? std::erfc((mean[k] - x) / std::sqrt(2 * variance[k])) / 2
                       : x > mean[k]   ? 1.0
                                       : 0.0);
    return p;
  }
  double expected() const {
    return std::inner_product(share.begin(), share.end(), mean.begin(), 0.0);
  }
  double quantile(double p) const {
    double lo = mean[0], hi = mean[0];
    for (std::size_t k = 0; k < share.size(); ++k) {
      const double far = 10 * std::sqrt(variance[k]);
      lo = std::min(lo, mean[k] - far), hi = std::max(hi, mean[k] + far);
    }
    for (int step = 0; step < 80; ++step) {
      const double middle = (lo + hi) / 2;
      (below(middle) < p ? lo : hi) = middle;
    }
    return (lo + hi) / 2;
  }
};

Mixture posterior(const NoisyError& e, const ErrorLaw& law) {
  Mixture m;
  const double at = law.mean * std::sqrt(e.resolution);
  const bool seen = std::isfinite(e.noise);
  double sum = 0;
  for (std::size_t k = 0; k < kErrorComponents.size(); ++k) {
    const double v = kErrorComponents[k] * e.resolution, gain = seen ? v / (v + e.noise) : 0;
    m.mean[k] = at + gain * (e.value - at);
    m.variance[k] = v * (1 - gain);
    sum += m.share[k] = law.shares[k] * (seen ? normal_density(e.value - at, v + e.noise) : 1);
  }
  // Farther away than any component reaches: the widest one.
  if (!(sum > 0)) m.share.fill(0), m.share.back() = sum = 1;
  for (double& s : m.share) s /= sum;
  return m;
}

// log density of a mean square of `rows` normal numbers, up to what does not depend on the law.
double log_density(double s2, double rows, const SharedVariance& law) {
  const double a = law.prior_rows, b = a * law.typical;
  return std::lgamma((a + rows) / 2) - std::lgamma(a / 2) + a / 2 * std::log(b) -
         (a + rows) / 2 * std::log(b + rows * s2);
}

}  // namespace

SharedVariance share_variances(const std::vector<double>& s2, const std::vector<double>& rows) {
  SharedVariance best{1, kPriorRows.back()};
  double most = -std::numeric_limits<double>::infinity();
  for (double prior_rows : kPriorRows) {
    SharedVariance law{0, prior_rows};
    double n = 0, sum = 0;
    for (std::size_t i = 0; i < s2.size(); ++i) n += rows[i], sum += rows[i] * s2[i];
    if (!(sum > 0)) return best;
    law.typical = sum / n;
    for (int step = 0; step < 50; ++step) {  // EM: the harmonic mean of the agents' variances
      double precision = 0;
      for (std::size_t i = 0; i < s2.size(); ++i) precision += 1 / law.of(s2[i], rows[i]);
      law.typical = static_cast<double>(s2.size()) / precision;
    }
    double fits = 0;
    for (std::size_t i = 0; i < s2.size(); ++i) fits += log_density(s2[i], rows[i], law);
    if (fits >= most) most = fits, best = law;
  }
  return best;
}

ErrorLaw learn_errors(const std::vector<NoisyError>& errors) {
  constexpr std::size_t kCount = kErrorComponents.size();
  ErrorLaw law{0, std::vector<double>(kCount, 1.0 / kCount)};
  double seen = 0;
  for (const NoisyError& e : errors) seen += std::isfinite(e.noise);
  for (int step = 0; step < kSteps; ++step) {
    std::array<double, kCount> shares = {};
    double pull = 0, weight = 1;  // the mean has a normal prior of one unit
    for (const NoisyError& e : errors) {
      if (!std::isfinite(e.noise)) continue;
      const Mixture m = posterior(e, law);
      for (std::size_t k = 0; k < kCount; ++k) {
        shares[k] += m.share[k];
        const double v = kErrorComponents[k] * e.resolution + e.noise;
        pull += m.share[k] * std::sqrt(e.resolution) * e.value / v;
        weight += m.share[k] * e.resolution / v;
      }
    }
    double moved = std::abs(pull / weight - law.mean);
    law.mean = pull / weight;
    for (std::size_t k = 0; k < kCount; ++k) {
      const double share =
          (shares[k] + kAnyError / kCount + (k == 0 ? kNoError : 0)) / (seen + kAnyError + kNoError);
      moved = std::max(moved, std::abs(share - law.shares[k]));
      law.shares[k] = share;
    }
    if (moved < kStill) break;
  }
  return law;
}

namespace {

// Noise variances by agent, and what is known of all agents' noise.
struct Noise {
  SharedVariance shared;
  // Rows of other folds are among those that a model is learnt from, so the slopes of rows share
  // noise. It adds as much as the noise in the gap itself: about this many variances over all rows.
  double shared_slopes = 0;
  // The noise along the difference of models over the noise that the models know of: above 1 where
  // it is larger where rows weigh more.
  double ratio = 1;
};

// Only agents of two rows or more had a model of their own rows when a row was held out.
bool is_scored(const GainEvidence& a) { return a.rows > 1 && a.gap > 0; }

Noise learn_noise(const std::vector<GainEvidence>& agents, double freedom) {
  std::vector<double> s2, rows;
  double found = 0, stated = 0;
  for (const GainEvidence& a : agents)
    if (is_scored(a)) {
      s2.push_back(a.slope2 / a.gap), rows.push_back(a.rows);
      found += a.rows * s2.back(), stated += a.rows * a.stated;
    }
  Noise noise{share_variances(s2, rows)};
  if (stated > 0) noise.ratio = std::max(1.0, found / stated);
  for (const GainEvidence& a : agents)
    if (is_scored(a))
      noise.shared_slopes += a.gap * a.rows / noise.shared.of(a.slope2 / a.gap, a.rows);
  noise.shared_slopes = std::min(noise.shared_slopes / std::max<double>(1, static_cast<double>(s2.size())),
                                 kTrainedOn * freedom);
  return noise;
}

NoisyError error_of(const GainEvidence& a, const Noise& noise) {
  const bool known = is_scored(a);
  const double s2 = known ? noise.shared.of(a.slope2 / a.gap, a.rows) : noise.shared.typical;
  NoisyError e{0, std::numeric_limits<double>::infinity(), s2 / a.rows};
  if (!known) return e;
  const double t = student_quantile((1 + kConfidence) / 2, noise.shared.prior_rows + a.rows) /
                   normal_limit((1 - kConfidence) / 2);
  e.value = a.slope / std::sqrt(a.gap);
  e.noise = t * t * e.resolution * (1 + s2 * noise.shared_slopes / (a.rows * a.gap));
  return e;
}

// The interval of a gain whose unit is vague: a factor whose logarithm has this standard deviation.
// The factor does not change signs, so neither end moves across 0.
Estimate vaguer(const Estimate& e, double vague, double level) {
  const double more = normal_limit((1 - level) / 2) * vague;
  const auto end = [&](double from) {
    if (from * e.mean > 0)
      return from * std::exp((std::abs(from) < std::abs(e.mean) ? -1 : 1) *
                             (std::hypot(std::log(from / e.mean), more) -
                              std::abs(std::log(from / e.mean))));
    return e.mean + std::copysign(std::hypot(from - e.mean, more * e.mean), from - e.mean);
  };
  return {e.mean, end(e.lo), end(e.hi), e.median};
}

}  // namespace

std::vector<ShrunkGain> shrink_gains(const std::vector<GainEvidence>& agents, double freedom,
                                     double level) {
  const Noise noise = learn_noise(agents, freedom);
  std::vector<NoisyError> errors;
  for (const GainEvidence& a : agents) errors.push_back(error_of(a, noise));
  const ErrorLaw law = learn_errors(errors);
  std::vector<ShrunkGain> gains;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const double gap = agents[i].in_hand, root = std::sqrt(gap);
    if (!(gap > 0)) {  // the chosen model is the independent one
      gains.push_back({{0, 0, 0, 0}, 0.5});
      continue;
    }
    // Held-out rows know nothing of the error that the models in hand have by chance.
    Mixture m = posterior(errors[i], law);
    const double chance =
        agents[i].unsure >= 0 ? noise.ratio * agents[i].unsure : errors[i].resolution;
    for (double& v : m.variance) v += chance;
    const auto gain = [&](double error) { return gap - 2 * root * error; };
    const Estimate estimate{gain(m.expected()), gain(m.quantile((1 + level) / 2)),
                            gain(m.quantile((1 - level) / 2)), gain(m.quantile(0.5))};
    gains.push_back({vaguer(estimate, agents[i].vague, level), m.below(root / 2)});
  }
  return gains;
}

}  // namespace affpcl
