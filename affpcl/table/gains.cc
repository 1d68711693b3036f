#include "affpcl/table/gains.h"

#include <math.h>  // lgamma_r is POSIX

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "affpcl/math/squarem.h"

namespace affpcl {
namespace {

constexpr int kSteps = 300, kVarianceSteps = 50;
constexpr double kStill = 1e-7, kVarianceStill = 1e-9;  // largest change in a step of EM
constexpr double kLargestLog = 600;
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

// std::lgamma writes the sign to a variable that threads share.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// log density of a mean square of `rows` normal numbers, up to what does not depend on the law.
double log_density(double s2, double rows, const SharedVariance& law) {
  const double a = law.prior_rows, b = a * law.typical;
  return log_gamma((a + rows) / 2) - log_gamma(a / 2) + a / 2 * std::log(b) -
         (a + rows) / 2 * std::log(b + rows * s2);
}

}  // namespace

SharedVariance share_variances(const std::vector<double>& s2, const std::vector<double>& rows,
                               std::size_t all, Team& team) {
  constexpr std::size_t kLaws = kPriorRows.size();
  const auto first = static_cast<std::size_t>(own_agents(all, team).first);
  AgentSum three("noise of the gains", 3, all, team);
  const double* const mean = three([&](std::size_t i, double* out) {
    const double n = rows[i - first];
    out[0] += n, out[1] += n > 0 ? n * s2[i - first] : 0, out[2] += n > 0;
  });
  if (!(mean[1] > 0)) return {1, kPriorRows.back()};
  const double agents = mean[2];
  std::array<SharedVariance, kLaws> laws;
  for (std::size_t k = 0; k < kLaws; ++k) laws[k] = {mean[1] / mean[0], kPriorRows[k]};
  AgentSum sum("noise of the gains", kLaws, all, team);
  // EM, of all laws at once: the harmonic mean of the variances. Numbers are logarithms.
  std::vector<double> logs(kLaws, std::log(mean[1] / mean[0]));
  const auto next = [&](const std::vector<double>& from) {
    for (std::size_t k = 0; k < kLaws; ++k) laws[k].typical = std::exp(from[k]);
    const double* const precision = sum([&](std::size_t i, double* out) {
      if (rows[i - first] == 0) return;
      for (std::size_t k = 0; k < kLaws; ++k)
        out[k] += 1 / laws[k].of(s2[i - first], rows[i - first]);
    });
    std::vector<double> to(kLaws);
    for (std::size_t k = 0; k < kLaws; ++k) to[k] = std::log(agents / precision[k]);
    return to;
  };
  squarem(logs, kVarianceSteps, kVarianceStill, next, [](const auto& at) {
    return std::all_of(at.begin(), at.end(), [](double v) { return std::abs(v) < kLargestLog; });
  });
  for (std::size_t k = 0; k < kLaws; ++k) laws[k].typical = std::exp(logs[k]);
  const double* const fits = sum([&](std::size_t i, double* out) {
    if (rows[i - first] == 0) return;
    for (std::size_t k = 0; k < kLaws; ++k)
      out[k] += log_density(s2[i - first], rows[i - first], laws[k]);
  });
  std::size_t best = 0;
  for (std::size_t k = 1; k < kLaws; ++k)
    if (fits[k] >= fits[best]) best = k;
  return laws[best];
}

ErrorLaw learn_errors(const std::vector<NoisyError>& errors, std::size_t all, Team& team) {
  constexpr std::size_t kCount = kErrorComponents.size(), kPull = kCount, kWeight = kCount + 1,
                        kSeen = kCount + 2;
  const auto first = static_cast<std::size_t>(own_agents(all, team).first);
  ErrorLaw law{0, std::vector<double>(kCount, 1.0 / kCount)};
  AgentSum sum("law of the gains", kSeen + 1, all, team);
  std::vector<double> at(kCount + 1, 1.0 / kCount);  // the shares, then the mean
  at[kCount] = 0;
  const auto set = [&](const std::vector<double>& from) {
    law.mean = from[kCount];
    std::copy_n(from.begin(), kCount, law.shares.begin());
  };
  const auto next = [&](const std::vector<double>& from) {
    set(from);
    const double* const total = sum([&](std::size_t i, double* out) {
      const NoisyError& e = errors[i - first];
      if (!std::isfinite(e.noise)) return;
      const Mixture m = posterior(e, law);
      for (std::size_t k = 0; k < kCount; ++k) {
        out[k] += m.share[k];
        const double v = kErrorComponents[k] * e.resolution + e.noise;
        out[kPull] += m.share[k] * std::sqrt(e.resolution) * e.value / v;
        out[kWeight] += m.share[k] * e.resolution / v;
      }
      out[kSeen] += 1;
    });
    std::vector<double> to(kCount + 1);
    for (std::size_t k = 0; k < kCount; ++k)
      to[k] = (total[k] + kAnyError / kCount + (k == 0 ? kNoError : 0)) /
              (total[kSeen] + kAnyError + kNoError);
    to[kCount] = total[kPull] / (1 + total[kWeight]);  // its prior is one unit wide
    return to;
  };
  squarem(at, kSteps, kStill, next, [](const std::vector<double>& to) {
    return *std::min_element(to.begin(), to.begin() + kCount) > 0;
  });
  set(at);
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
bool is_scored(const GainEvidence& a) { return a.rows > 1 && a.norm > 0; }

Noise learn_noise(const std::vector<GainEvidence>& own, double freedom, std::size_t all,
                  Team& team) {
  std::vector<double> s2, rows;  // without rows: not scored
  for (const GainEvidence& a : own) {
    rows.push_back(is_scored(a) ? a.rows : 0);
    s2.push_back(is_scored(a) ? a.slope2 / a.norm : 0);
  }
  Noise noise{share_variances(s2, rows, all, team)};
  const auto first = static_cast<std::size_t>(own_agents(all, team).first);
  AgentSum sum("noise of the gains", 4, all, team);
  const double* const total = sum([&](std::size_t i, double* out) {
    const GainEvidence& a = own[i - first];
    if (!is_scored(a)) return;
    out[0] += a.rows * s2[i - first], out[1] += a.rows * a.stated;
    out[2] += a.norm * a.rows / noise.shared.of(s2[i - first], a.rows);
    out[3] += 1;
  });
  if (total[1] > 0) noise.ratio = std::max(1.0, total[0] / total[1]);
  noise.shared_slopes = std::min(total[2] / std::max(1.0, total[3]), kTrainedOn * freedom);
  return noise;
}

NoisyError error_of(const GainEvidence& a, const Noise& noise) {
  const bool known = is_scored(a);
  const double s2 = known ? noise.shared.of(a.slope2 / a.norm, a.rows) : noise.shared.typical;
  NoisyError e{0, std::numeric_limits<double>::infinity(), s2 / a.rows};
  if (!known) return e;
  const double t = student_quantile((1 + kConfidence) / 2, noise.shared.prior_rows + a.rows) /
                   normal_limit((1 - kConfidence) / 2);
  e.value = a.slope / std::sqrt(a.norm);
  e.noise = t * t * e.resolution * (1 + s2 * noise.shared_slopes / (a.rows * a.norm));
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
                                     std::size_t all, Team& team, double level, bool learn) {
  const Noise noise = learn_noise(agents, freedom, all, team);
  std::vector<NoisyError> errors;
  for (const GainEvidence& a : agents) errors.push_back(error_of(a, noise));
  std::vector<NoisyError> heard = errors;
  for (NoisyError& e : heard)
    if (!learn) e.noise = std::numeric_limits<double>::infinity();
  const ErrorLaw law = learn_errors(heard, all, team);
  std::vector<ShrunkGain> gains;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const auto [gap, norm] = agents[i].in_hand;
    const double root = std::sqrt(norm);
    if (norm == 0) {  // the chosen model is the independent one
      gains.push_back({{0, 0, 0, 0}, 0.5});
      continue;
    }
    if (!(norm >
          0)) {  // held-out losses are not convex between the models: their means are all there is
      constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
      const double mean = agents[i].gap - 2 * agents[i].slope;
      gains.push_back({{mean, kUnknown, kUnknown, mean}, 0.5});
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
    gains.push_back({vaguer(estimate, agents[i].vague, level), m.below(gap / (2 * root))});
  }
  return gains;
}

}  // namespace affpcl
