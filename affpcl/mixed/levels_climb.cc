// The search for the variances of largest evidence with a second factor: Newton steps with the
// average information, kept to variances >= 0, and where these do not raise the evidence the step
// that always does.
#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/climb.h"
#include "affpcl/mixed/levels.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr double kRounding = 1e-13;                       // of the evidence, relative
constexpr double kTiny = 1e-300;                          // instead of dividing by 0
constexpr double kLargestRatio = 100;                     // of the step that always helps
constexpr double kNewtonRidge = 1e-9;                     // of the scaled information
constexpr double kShortestStep = 0.01;                    // of a Newton step
constexpr double kShorter = 4;                            // the next try
constexpr double kNoiseFactor = 5, kVarianceFactor = 10;  // the largest in one step
constexpr double kJustSeen = 1e-3;                        // of an estimated effect's variance
constexpr double kNegligible = 1e-9;                      // of that again
constexpr int kStillSteps = 5;                            // without a gain: the end
// Where a search starts without a guess, as shares of the target's mean square.
constexpr double kNoiseShare = 0.5, kVarianceShare = 0.05, kLeastShare = 1e-6;

class LevelClimb {
 public:
  LevelClimb(const LevelEffects& effects, LevelEvidence& evidence)
      : effects_(effects), evidence_(evidence), least_(effects.groups + 1) {
    const auto n = static_cast<double>(evidence.moments().n);
    for (std::size_t k = 0; k < effects.random.size(); ++k)
      least_[effects.group[k]] += evidence.column_squares()[effects.random[k]];
    for (double& v : least_) v = kJustSeen * n / (v + kTiny);
    least_.back() =
        kJustSeen * static_cast<double>(evidence.cells().levels) / std::max(1.0, evidence.rows());
  }

  // Variances of the groups, tau^2 and s^2.
  struct Point {
    Vector theta;
    double log_evidence = 0;
    double s2() const { return theta.back(); }
  };
  Point at(Vector theta) {
    const double value = evidence_(variances(theta));
    return {std::move(theta), value};
  }
  LevelVariances variances(const Vector& theta) const {
    LevelVariances v{{}, theta[effects_.groups], theta.back()};
    for (std::size_t group : effects_.group) v.D.push_back(theta[group]);
    return v;
  }

  Point step(const Point& old) {
    const LevelEvidence::Slopes s = evidence_.slopes(effects_);
    const std::vector<std::size_t> free = free_to_move(old, s);
    const Vector newton = newton_step(s, free);
    const double slack = kRounding * std::abs(old.log_evidence);
    const bool finite =
        std::all_of(newton.begin(), newton.end(), [](double v) { return std::isfinite(v); });
    for (double share = 1; share > kShortestStep && finite; share /= kShorter) {
      Point next = at(moved(old, newton, free, share));
      if (next.log_evidence >= old.log_evidence - slack) return next;
    }
    Vector theta = old.theta;
    for (std::size_t k = 0; k < theta.size(); ++k)
      theta[k] *=
          std::min(kLargestRatio, std::sqrt(std::max(s.up[k], 0.0) / std::max(s.down[k], kTiny)));
    for (std::size_t k = 0; k < least_.size(); ++k)
      if (theta[k] < kNegligible * least_[k] * old.s2()) theta[k] = 0;  // where it would end
    theta.back() = std::max(theta.back(), kSmallestNoise);
    return at(std::move(theta));
  }

  // The largest relative change of a variance that matters.
  double change(const Point& old, const Point& now) const {
    double change = std::abs(now.s2() - old.s2()) / now.s2();
    for (std::size_t k = 0; k < least_.size(); ++k) {
      const double size = std::max(now.theta[k], old.theta[k]);
      if (size > kNegligible * least_[k] * now.s2())
        change = std::max(change, std::abs(now.theta[k] - old.theta[k]) / size);
    }
    return change;
  }

 private:
  std::vector<std::size_t> free_to_move(const Point& p, const LevelEvidence::Slopes& s) const {
    std::vector<std::size_t> free;
    for (std::size_t k = 0; k < p.theta.size(); ++k)
      if (p.theta[k] > (k < least_.size() ? 0 : kSmallestNoise) || s.up[k] > s.down[k])
        free.push_back(k);
    return free;
  }

  // AI^-1 score in the free coordinates.
  static Vector newton_step(const LevelEvidence::Slopes& s, const std::vector<std::size_t>& free) {
    Matrix sub(free.size(), free.size());
    for (std::size_t a = 0; a < free.size(); ++a)
      for (std::size_t b = 0; b < free.size(); ++b) sub(a, b) = s.information(free[a], free[b]);
    Vector scale = diagonal_of(sub), slope(free.size());
    for (std::size_t a = 0; a < free.size(); ++a) {
      scale[a] = 1 / std::sqrt(std::max(std::abs(scale[a]), kTiny));
      slope[a] = scale[a] * (s.up[free[a]] - s.down[free[a]]) / 2;
    }
    rescale(sub, scale);
    add_to_diagonal(kNewtonRidge, sub);
    Vector step = Ldlt(sub).solve(slope);
    for (std::size_t a = 0; a < free.size(); ++a) step[a] *= scale[a];
    return step;
  }

  Vector moved(const Point& old, const Vector& newton, const std::vector<std::size_t>& free,
               double share) const {
    Vector theta = old.theta;
    for (std::size_t a = 0; a < free.size(); ++a) {
      const std::size_t k = free[a];
      const double now = old.theta[k], next = now + share * newton[a];
      if (k == least_.size()) {
        theta[k] =
            std::max(kSmallestNoise, std::clamp(next, now / kNoiseFactor, now * kNoiseFactor));
      } else {
        // To 0 only from where it hardly matters: far jumps end in the wrong maximum.
        const double seen = least_[k] * old.s2();
        theta[k] = std::clamp(next, now > seen ? now / kVarianceFactor : 0.0,
                              kVarianceFactor * std::max(now, seen));
      }
    }
    return theta;
  }

  const LevelEffects& effects_;
  LevelEvidence& evidence_;
  Vector least_;  // by group, then of the levels, over s^2: a variance comes back from 0 with it
};

Vector first_theta(const LevelEffects& effects, const LevelVariances& start) {
  Vector theta(effects.groups + 2), members(effects.groups);
  for (std::size_t k = 0; k < effects.group.size(); ++k)
    theta[effects.group[k]] += start.D[k], ++members[effects.group[k]];
  for (std::size_t g = 0; g < effects.groups; ++g) theta[g] /= members[g];
  theta[effects.groups] = start.tau2;
  theta.back() = std::max(kSmallestNoise, start.s2);
  return theta;
}

}  // namespace

LevelEffects effects_of(Covariance covariance, const std::vector<std::size_t>& random) {
  LevelEffects effects{random, std::vector<std::size_t>(random.size(), 0),
                       std::min<std::size_t>(random.size(), 1)};
  if (covariance == Covariance::kScalar) return effects;
  effects.groups = random.size();
  for (std::size_t k = 0; k < random.size(); ++k) effects.group[k] = k;
  return effects;
}

LevelDecomposition climb_levels(const LevelEffects& effects, const LevelVariances& start,
                                const LevelOptions& o, LevelEvidence& evidence) {
  LevelClimb climb(effects, evidence);
  LevelClimb::Point point = climb.at(first_theta(effects, start));
  LevelDecomposition r;
  r.converged = false;
  int still = 0;
  for (int k = 0; k < o.iterations && !r.converged; ++k) {
    LevelClimb::Point next = climb.step(point);
    const double gain = next.log_evidence - point.log_evidence;
    const double slack = kRounding * std::abs(point.log_evidence);
    still = gain <= std::max(slack, o.evidence_tolerance) ? still + 1 : 0;
    r.converged = climb.change(point, next) < o.tolerance ||
                  still >= (o.evidence_tolerance > 0 ? 1 : kStillSteps);
    point = std::move(next);
  }
  const bool shared = effects.groups < effects.random.size();
  r.covariance = shared ? Covariance::kScalar : Covariance::kDiagonal;
  r.variances = climb.variances(point.theta);
  r.log_evidence = point.log_evidence;
  for (std::size_t k = 0; k <= effects.groups; ++k) r.numbers += point.theta[k] > 0;
  r.bic = -2 * r.log_evidence + r.numbers * std::log(static_cast<double>(evidence.moments().n));
  return r;
}

std::vector<LevelDecomposition> decompose_levels(const LevelOptions& o,
                                                 const LevelDecomposition* start,
                                                 LevelEvidence& evidence) {
  const std::vector<std::size_t>& random = evidence.random();
  const auto climb = [&](Covariance form, const LevelVariances& from) {
    return climb_levels(effects_of(form, random), from, o, evidence);
  };
  if (start != nullptr) return {climb(start->covariance, start->variances)};
  const double y2 = evidence.yy() / std::max(1.0, evidence.rows());
  LevelVariances from{Vector(random.size(), kVarianceShare * y2), kVarianceShare * y2,
                      kNoiseShare * y2};
  if (random.size() < 2) return {climb(Covariance::kDiagonal, from)};
  std::vector<LevelDecomposition> tried = {climb(Covariance::kScalar, from)};
  const LevelVariances scalar = tried[0].variances;
  from.D.assign(random.size(), std::max(scalar.D[0], kLeastShare * y2));
  from.tau2 = std::max(scalar.tau2, kLeastShare * y2), from.s2 = scalar.s2;
  tried.push_back(climb(Covariance::kDiagonal, from));
  if (tried[1].bic < tried[0].bic) {
    std::swap(tried[0], tried[1]);
  } else {
    evidence(scalar);
  }
  return tried;
}

}  // namespace affpcl
