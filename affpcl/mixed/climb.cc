#include "affpcl/mixed/climb.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr int kFullTrial = 6;               // steps after which a hopeless full D is given up
constexpr int kHopeless = 10 * kFullTrial;  // so many steps as large as the last do not suffice
constexpr int kStillSteps = 5;              // without a gain: the end
constexpr double kRounding = 1e-13;         // of the evidence, relative
constexpr double kSettled = 1e-4;           // of the evidence: no decision depends on less
constexpr double kTiny = 1e-300;
constexpr double kNewtonRidge = 1e-9;   // of the scaled information
constexpr double kShortestStep = 0.01;  // of a Newton step
constexpr double kShorter = 4;          // the next try
constexpr int kUntried = 4;             // steps after Newton's failed
constexpr double kMostPower = 16;
constexpr double kNoiseFactor = 5, kVarianceFactor = 10;  // the largest in one step
constexpr double kJustSeen = 1e-3;                        // of the variance of an agent's estimate
constexpr double kNegligible = 1e-9;                      // of that again
constexpr double kFullStart = 1e-3, kFullLeast = 1e-12;   // added to the diagonal of a full D

// AI^-1 score in the free coordinates.
Vector newton_step(const Vector& score, const Matrix& AI, const std::vector<std::size_t>& free) {
  Matrix sub(free.size(), free.size());
  for (std::size_t a = 0; a < free.size(); ++a)
    for (std::size_t b = 0; b < free.size(); ++b) sub(a, b) = AI(free[a], free[b]);
  Vector scale = diagonal_of(sub), slope(free.size());
  for (std::size_t a = 0; a < free.size(); ++a) {
    scale[a] = 1 / std::sqrt(std::max(std::abs(scale[a]), 1e-300));
    slope[a] = scale[a] * score[free[a]];
  }
  rescale(sub, scale);
  add_to_diagonal(1e-9, sub);
  Vector step = Ldlt(sub).solve(slope);
  for (std::size_t a = 0; a < free.size(); ++a) step[a] *= scale[a];
  return step;
}

// When to stop: the variances hardly move, or the evidence does not rise. Along a ridge variances
// may wander without end at the same evidence.
class Stop {
 public:
  explicit Stop(const DecompositionOptions& o) : o_(o) {}
  bool operator()(double change, double gain, double slack) {
    still_ = gain <= std::max(slack, o_.evidence_tolerance) ? still_ + 1 : 0;
    return change < o_.tolerance || still_ >= (o_.evidence_tolerance > 0 ? 1 : kStillSteps);
  }

 private:
  const DecompositionOptions& o_;
  int still_ = 0;
};

class GroupClimb {
 public:
  GroupClimb(const Moments& m, const VarianceGroups& groups, Evidence& evidence)
      : m_(m), groups_(groups), evidence_(evidence), least_(groups.count) {
    for (std::size_t j = 0; j < m.d; ++j) least_[groups.of[j]] += evidence.column_squares()[j];
    for (double& v : least_) v = 1 / (v + 1e-12) * (kJustSeen * static_cast<double>(m.n));
  }

  struct Point {
    Vector theta;
    double s2 = 1, log_evidence = 0;
  };
  Point at(Vector theta, double s2) {
    const double value = evidence_(D_of(theta), s2, true).log_evidence;
    return {std::move(theta), s2, value};
  }

  // The next point; a Newton step if one raises the evidence. Where none did, as on the way of many
  // variances to 0, some steps are taken without trying, each as long as the evidence allows.
  Point step(const Point& old) {
    const EvidenceSlopes slopes = evidence_.slopes();
    const double slack = kRounding * std::abs(old.log_evidence);
    if (untried_ > 0) {
      --untried_;
      return scaled(old, slopes, slack);
    }
    const auto [score, AI] = slopes.information(groups_);
    const std::vector<std::size_t> free = free_to_move(old, score);
    const Vector newton = newton_step(score, AI, free);
    const bool finite =
        std::all_of(newton.begin(), newton.end(), [](double v) { return std::isfinite(v); });
    for (double share = 1; share > kShortestStep && finite; share /= kShorter) {
      Point next = moved(old, newton, free, share);
      if (next.log_evidence >= old.log_evidence - slack) return next;
    }
    untried_ = kUntried;
    return scaled(old, slopes, slack);
  }

  // The largest relative change of a variance that matters.
  double change(const Point& old, const Point& now) const {
    double change = std::abs(now.s2 - old.s2) / now.s2;
    for (std::size_t g = 0; g < groups_.count; ++g) {
      const double size = std::max(now.theta[g], old.theta[g]);
      if (size > kNegligible * least_[g] * now.s2)
        change = std::max(change, std::abs(now.theta[g] - old.theta[g]) / size);
    }
    return change;
  }

  Matrix D_of(const Vector& theta) const {
    Matrix D(m_.d, m_.d);
    for (std::size_t j = 0; j < m_.d; ++j) D(j, j) = theta[groups_.of[j]];
    return D;
  }

 private:
  // Each variance times a power of the ratio that raises the evidence for sure at power 1.
  Point scaled(const Point& old, const EvidenceSlopes& slopes, double slack) {
    for (;; power_ = 1) {
      const auto factor = [&](double ratio) {
        return power_ == 1
                   ? ratio
                   : std::clamp(std::pow(ratio, power_), 1 / kVarianceFactor, kVarianceFactor);
      };
      const double s2 = std::max(kSmallestNoise, old.s2 * factor(slopes.noise_ratio()));
      Vector theta;
      for (std::size_t g = 0; g < groups_.count; ++g) {
        const double to = old.theta[g] * factor(slopes.group_ratio(groups_, g));
        theta.push_back(to > kNegligible * least_[g] * s2 ? to : 0);
      }
      Point next = at(std::move(theta), s2);
      if (power_ > 1 && !(next.log_evidence >= old.log_evidence - slack)) continue;
      power_ = std::min(2 * power_, kMostPower);
      if (next.log_evidence - old.log_evidence < kSettled) untried_ = 0;
      return next;
    }
  }
  // Variances that are not held at 0; s^2 comes after them.
  std::vector<std::size_t> free_to_move(const Point& p, const Vector& score) const {
    std::vector<std::size_t> free;
    for (std::size_t g = 0; g < groups_.count; ++g)
      if (p.theta[g] > 0 || score[g] > 0) free.push_back(g);
    if (p.s2 > kSmallestNoise || score[groups_.count] > 0) free.push_back(groups_.count);
    return free;
  }

  Point moved(const Point& old, const Vector& newton, const std::vector<std::size_t>& free,
              double share) {
    Vector theta = old.theta;
    double s2 = old.s2;
    for (std::size_t a = 0; a < free.size(); ++a) {
      const std::size_t g = free[a];
      const double move = share * newton[a];
      if (g == groups_.count) {
        s2 = std::max(kSmallestNoise,
                      std::clamp(old.s2 + move, old.s2 / kNoiseFactor, old.s2 * kNoiseFactor));
      } else {
        // To 0 only from where it hardly matters: far jumps end in the wrong maximum.
        const double seen = least_[g] * old.s2;
        const double floor = old.theta[g] > seen ? old.theta[g] / kVarianceFactor : 0.0;
        theta[g] =
            std::clamp(old.theta[g] + move, floor, kVarianceFactor * std::max(old.theta[g], seen));
      }
    }
    return at(std::move(theta), s2);
  }

  const Moments& m_;
  const VarianceGroups& groups_;
  Evidence& evidence_;
  int untried_ = 0;   // steps until Newton's is tried again
  double power_ = 1;  // of the next scaled step
  // By group, over s^2: a variance comes back from 0 with what an agent can just see.
  Vector least_;
};

}  // namespace

Decomposition decomposition_at(const Evidence& evidence, Covariance form, const Matrix& D,
                               double s2, double numbers, const Moments& m) {
  Decomposition r;
  r.covariance = form;
  r.variances.D = D.all();
  r.variances.s2 = s2;
  r.centre = evidence.value().centre;
  r.variance_cov.assign(m.d * m.d, 0.0);
  r.centre_cov = evidence.value().centre_cov.all();
  r.log_evidence = evidence.value().log_evidence;
  r.numbers = numbers;
  r.bic = -2 * r.log_evidence + numbers * std::log(static_cast<double>(m.n));
  return r;
}

Decomposition climb_groups(const Moments& m, const VarianceGroups& groups, GroupStart start,
                           const DecompositionOptions& o, Evidence& evidence) {
  GroupClimb climb(m, groups, evidence);
  Stop stop(o);
  GroupClimb::Point point = climb.at(std::move(start.theta), start.s2);
  std::vector<ClimbStep> log;
  bool converged = false;
  double gain = 0;
  while (static_cast<int>(log.size()) < o.iterations && !converged) {
    const GroupClimb::Point next = climb.step(point);
    const double change = climb.change(point, next);
    converged = stop(change, next.log_evidence - point.log_evidence,
                     kRounding * std::abs(point.log_evidence));
    log.push_back({next.log_evidence, next.s2, change});
    gain = next.log_evidence - point.log_evidence;
    point = next;
  }
  const auto numbers = static_cast<double>(
      std::count_if(point.theta.begin(), point.theta.end(), [](double t) { return t > 0; }));
  const Covariance form = groups.count == 1 ? Covariance::kScalar : Covariance::kDiagonal;
  Decomposition r = decomposition_at(evidence, form, climb.D_of(point.theta), point.s2, numbers, m);
  r.variance_cov = evidence.variance_cov(groups).all();
  r.log = std::move(log);
  r.converged = converged || gain < kSettled;
  return r;
}

Decomposition climb_full(const Moments& m, const Decomposition& diagonal, double needed,
                         const DecompositionOptions& o, Evidence& evidence) {
  Matrix D = as_matrix(diagonal.variances.D, m.d);
  const double typical = trace(D) / static_cast<double>(m.d);
  add_to_diagonal(kFullStart * typical + kFullLeast, D);
  // Few agents leave correlations open, and the largest evidence then is at -1 or 1. The prior
  // keeps D near the diagonal one unless there are many more agents than coefficients.
  const Vector mode = diagonal_of(D);
  const double prior = o.plain ? 0 : static_cast<double>(m.d) + 1;
  double s2 = diagonal.variances.s2, value = evidence(D, s2, false).log_evidence;
  Stop stop(o);
  std::vector<ClimbStep> log;
  bool converged = false;
  double gain = 0;
  while (static_cast<int>(log.size()) < o.iterations && !converged) {
    const EvidenceSlopes slopes = evidence.slopes();
    const Matrix next = slopes.full_step(D, mode, prior);
    const double noise = std::max(kSmallestNoise, s2 * slopes.noise_ratio());
    double moved = 0, largest = kTiny;
    for (std::size_t j = 0; j < m.d * m.d; ++j) {
      moved = std::max(moved, std::abs(next.all()[j] - D.all()[j]));
      largest = std::max(largest, std::abs(next.all()[j]));
    }
    const double change = std::max(moved / largest, std::abs(noise - s2) / noise);
    D = next;
    s2 = noise;
    const double before = value;
    value = evidence(D, s2, false).log_evidence;
    gain = value - before;
    converged = stop(change, gain, kRounding * std::abs(value));
    log.push_back({value, s2, change});
    // The first steps bring most of the gain.
    if (static_cast<int>(log.size()) >= kFullTrial && value + kHopeless * gain < needed) break;
  }
  const double d = static_cast<double>(m.d);
  Decomposition r = decomposition_at(evidence, Covariance::kFull, D, s2, d * (d + 1) / 2, m);
  r.log = std::move(log);
  r.converged = converged || gain < kSettled;
  return r;
}

}  // namespace affpcl
