#include "affpcl/mixed/decomposition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/climb.h"
#include "affpcl/mixed/evidence.h"

namespace affpcl {
namespace {

using namespace mixed;

// Where a climb starts without a guess, as shares of the target's mean square.
constexpr double kNoiseShare = 0.5, kVarianceShare = 0.05, kLeastVarianceShare = 1e-6;
constexpr double kLeastScalar = 1e-9;      // a scalar D starts above 0
constexpr std::size_t kAgentsAColumn = 2;  // at least, for a full D

VarianceGroups one_group(std::size_t d) { return {std::vector<std::size_t>(d, 0), 1}; }
VarianceGroups own_groups(std::size_t d) {
  VarianceGroups groups{std::vector<std::size_t>(d), d};
  for (std::size_t j = 0; j < d; ++j) groups.of[j] = j;
  return groups;
}

// One agent does not show how agents differ: D is 0.
Decomposition decompose_single(const Moments& m, double s2, const DecompositionOptions& o,
                               Team& team, Evidence& evidence) {
  Decomposition r = climb_groups(m, one_group(m.d), {Vector(1), s2}, o, evidence);
  if (r.variances.D[0] != 0) {
    r.variances.D.assign(m.d * m.d, 0.0);
    const Decomposition centre =
        decompose_known(m, r.variances, o.centre_precision, team, o.restricted);
    r.centre = centre.centre, r.centre_cov = centre.centre_cov;
    r.log_evidence = centre.log_evidence;
    r.numbers = 0;
  }
  r.variance_cov.assign(m.d * m.d, 0.0);
  return r;
}

// The evidence at which a full D has the smallest BIC of all.
double evidence_needed(const Moments& m, const std::vector<Decomposition>& tried) {
  double best = std::numeric_limits<double>::infinity();
  for (const Decomposition& t : tried) best = std::min(best, t.bic);
  const double d = static_cast<double>(m.d);
  return (d * (d + 1) / 2 * std::log(static_cast<double>(m.n)) - best) / 2;
}

}  // namespace

Decomposition decompose_known(const Moments& m, const Variances& variances, double centre_precision,
                              Team& team, bool restricted) {
  Evidence evidence(m, centre_precision, team, restricted);
  const Matrix D = as_matrix(variances.D, m.d);
  const bool diagonal = is_diagonal(D);
  evidence(D, variances.s2, diagonal);
  return decomposition_at(evidence, diagonal ? Covariance::kDiagonal : Covariance::kFull, D,
                          variances.s2, 0, m);
}

double log_likelihood(double log_evidence, const std::vector<double>& centre,
                      double centre_precision, bool restricted) {
  if (!restricted) return log_evidence + centre_precision * squared_norm(centre) / 2;
  return log_evidence +
         static_cast<double>(centre.size()) / 2 * std::log(2 * std::numbers::pi / centre_precision);
}

Chosen decompose(const Moments& m, const DecompositionOptions& o, Team& team) {
  Evidence evidence(m, o.centre_precision, team, o.restricted);
  const double y2 = evidence.yy() / std::max(1.0, evidence.rows());
  double s2 = o.start != nullptr ? o.start->s2 : std::max(kSmallestNoise, kNoiseShare * y2);
  Chosen chosen;
  if (m.n == 1) {
    chosen.best = decompose_single(m, s2, o, team, evidence);
    chosen.tried = {chosen.best};
    return chosen;
  }
  Vector start(m.d, std::max(kSmallestNoise, kVarianceShare * y2));
  if (o.start != nullptr) start = diagonal_of(as_matrix(o.start->D, m.d));
  if (o.scalar) {
    const double typical = sum(start) / static_cast<double>(m.d);
    chosen.tried.push_back(
        climb_groups(m, one_group(m.d), {{std::max(typical, kLeastScalar)}, s2}, o, evidence));
    s2 = chosen.tried.back().variances.s2;
    if (o.start == nullptr)
      start.assign(m.d, std::max(chosen.tried.back().variances.D[0], kLeastVarianceShare * y2));
  }
  // With one coefficient all forms are the same.
  if ((o.diagonal || o.full) && (m.d > 1 || chosen.tried.empty())) {
    Decomposition diagonal = climb_groups(m, own_groups(m.d), {start, s2}, o, evidence);
    diagonal.covariance = Covariance::kDiagonal;  // of a single coordinate too
    if (o.diagonal) chosen.tried.push_back(diagonal);
    // A full D has d(d+1)/2 numbers, which few agents do not determine.
    if (o.full && m.d > 1 && (m.n >= kAgentsAColumn * m.d || !(o.scalar || o.diagonal)))
      chosen.tried.push_back(
          climb_full(m, diagonal, evidence_needed(m, chosen.tried), o, evidence));
  }
  chosen.best = *std::min_element(
      chosen.tried.begin(), chosen.tried.end(),
      [](const Decomposition& a, const Decomposition& b) { return a.bic < b.bic; });
  return chosen;
}

}  // namespace affpcl
