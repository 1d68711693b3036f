#include "affpcl/mixed/glmm.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr double kStartDeviation = 0.3;     // of random effects; columns are standardised
constexpr double kLeastInformation = 0.01;  // about a variance, as in decomposition.cc
constexpr double kNothing = 1e-7;           // a variance below this part of the largest is 0
constexpr double kLargestExtra = 12;        // |psi|: beyond it the limit is reached
constexpr std::size_t kMostEntries = 325;   // of a full D: 25 random effects
constexpr std::size_t kPairs = 20;          // steps that the quasi-Newton metric keeps
constexpr std::size_t kRecent = 10;         // steps that together gain less than this end the climb
constexpr double kRidge = 1e-3;
constexpr std::size_t kFew = 5;  // the same with GlmmOptions::enough
constexpr double kFar = 2e-3;    // a gain of a bound, of its value
constexpr int kFullTrial = 6;    // rounds after which a hopeless full D is given up

void add_to_diagonal(double number, MatrixSpan A) {
  for (std::size_t j = 0; j < A.rows(); ++j) A(j, j) += number;
}

// The numbers phi behind L: a deviation of all random effects, one for each of the c columns, which
// its effects on all predictors share, or the lower triangle.
class Form {
 public:
  Form(Covariance kind, std::size_t effects, std::size_t columns)
      : kind_(kind), q_(effects), c_(columns) {}

  bool full() const { return kind_ == Covariance::kFull; }
  Covariance kind() const { return kind_; }
  std::size_t size() const {
    return full() ? q_ * (q_ + 1) / 2 : q_ == 0 ? 0 : kind_ == Covariance::kScalar ? 1 : c_;
  }
  Matrix root(std::span<const double> phi) const {
    Matrix L(q_, q_);
    if (full()) {
      for (std::size_t j = 0, a = 0; j < q_; ++j)
        for (std::size_t k = 0; k <= j; ++k) L(j, k) = phi[a++];
    } else {
      for (std::size_t j = 0; j < q_; ++j) L(j, j) = phi[group(j)];
    }
    return L;
  }
  // phi of a D that may have another form.
  Vector phi(const Matrix& D) const {
    Vector phi(size());
    if (full()) {
      Matrix padded = D;
      const double typical = trace(D) / static_cast<double>(q_);
      add_to_diagonal(1e-3 * typical + 1e-8, padded);
      const Matrix U = Cholesky(padded).upper();
      for (std::size_t j = 0, a = 0; j < q_; ++j)
        for (std::size_t k = 0; k <= j; ++k) phi[a++] = U(k, j);
    } else if (kind_ == Covariance::kScalar) {
      if (q_ > 0) phi[0] = std::sqrt(trace(D) / static_cast<double>(q_));
    } else {
      for (std::size_t j = 0; j < q_; ++j)
        phi[group(j)] += D(j, j) * static_cast<double>(c_) / static_cast<double>(q_);
      for (double& v : phi) v = std::sqrt(v);
    }
    return phi;
  }
  Vector slope(std::span<const double> phi, const EvidenceSums& sums) const {
    Vector slope(size());
    if (full()) {
      const Matrix S = multiply(sums.D_slope, root(phi));
      for (std::size_t j = 0, a = 0; j < q_; ++j)
        for (std::size_t k = 0; k <= j; ++k) slope[a++] = 2 * S(j, k);
    } else {
      for (std::size_t j = 0; j < c_; ++j)
        slope[group(j)] += 2 * phi[group(j)] * sums.D_slope(0, j);
    }
    return slope;
  }
  // The curvature of steps of expectation maximisation: that of deviations which the rows know. A
  // bound needs it, whose random effects follow the deviations slowly.
  Matrix em_curvature(std::span<const double> phi, double agents) const {
    Matrix M(size(), size());
    for (std::size_t j = 0; j < q_; ++j) {
      const double v = phi[group(j)];
      M(group(j), group(j)) += 2 * agents / std::max(v * v, 1e-12);
    }
    return M;
  }
  // Minus the second derivative in phi, with average information for that in D.
  Matrix curvature(std::span<const double> phi, const EvidenceSums& sums) const {
    if (full()) return full_curvature(phi, sums);
    Matrix M(size(), size());
    for (std::size_t j = 0; j < c_; ++j) {
      M(group(j), group(j)) -= 2 * sums.D_slope(0, j);
      for (std::size_t k = 0; k < c_; ++k)
        M(group(j), group(k)) += 4 * phi[group(j)] * phi[group(k)] * sums.D_information(j, k);
    }
    return M;
  }
  // Covariance of the estimated variances, for every pair of random effects.
  Matrix spread_cov(const EvidenceSums& sums) const {
    Matrix cov(q_, q_);
    if (full() || q_ == 0) return cov;
    Matrix information(size(), size());
    for (std::size_t j = 0; j < c_; ++j)
      for (std::size_t k = 0; k < c_; ++k) information(group(j), group(k)) += sums.D_expected(j, k);
    add_to_diagonal(kLeastInformation, information);
    const Matrix inverse = Ldlt(information).inverse();
    for (std::size_t j = 0; j < q_; ++j)
      for (std::size_t k = 0; k < q_; ++k) cov(j, k) = inverse(group(j), group(k));
    return cov;
  }

 private:
  std::size_t group(std::size_t effect) const {
    return kind_ == Covariance::kScalar ? 0 : effect % c_;
  }
  Matrix full_curvature(std::span<const double> phi, const EvidenceSums& sums) const {
    const Matrix L = root(phi);
    Matrix J(size(), size());  // row: entry of D; column: entry of L
    const auto at = [](std::size_t j, std::size_t k) { return j * (j + 1) / 2 + k; };
    for (std::size_t j = 0; j < q_; ++j)
      for (std::size_t k = 0; k <= j; ++k) {
        for (std::size_t c = 0; c <= j; ++c) J(at(j, c), at(j, k)) += L(c, k);
        for (std::size_t r = j; r < q_; ++r) J(at(r, j), at(j, k)) += L(r, k);
      }
    Matrix M = multiply(transposed(J), multiply(sums.D_information, J));
    for (std::size_t k = 0; k < q_; ++k)
      for (std::size_t j = k; j < q_; ++j)
        for (std::size_t l = k; l < q_; ++l) M(at(j, k), at(l, k)) -= 2 * sums.D_slope(j, l);
    return M;
  }

  Covariance kind_;
  std::size_t q_, c_;
};

// A symmetric matrix made positive definite: negative curvature counts as positive.
class Positive {
 public:
  Positive() = default;
  explicit Positive(Matrix A) : scale_(A.rows()) {
    symmetrise(A);
    for (std::size_t j = 0; j < scale_.size(); ++j)
      scale_[j] = 1 / std::sqrt(std::max(std::abs(A(j, j)), 1e-12));
    for (std::size_t j = 0; j < A.rows(); ++j)
      for (std::size_t k = 0; k < A.cols(); ++k) A(j, k) *= scale_[j] * scale_[k];
    if (!scale_.empty()) eigen_ = symmetric_eigen(A);
  }
  Vector solve(std::span<const double> b) const {
    Vector x(b.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      double along = 0;
      for (std::size_t j = 0; j < x.size(); ++j) along += eigen_.vectors(k, j) * scale_[j] * b[j];
      along /= std::max(std::abs(eigen_.values[k]), 1e-6);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] += along * eigen_.vectors(k, j) * scale_[j];
    }
    return x;
  }

 private:
  Vector scale_;
  SymmetricEigen eigen_;
};

// The objective at one place: evidence and the prior of x_c, its slope, and its metric.
struct Place {
  Vector theta;  // x_c, phi, psi
  double value = -std::numeric_limits<double>::infinity();
  double log_likelihood = 0;
  Vector slope;
  bool found = true;  // the modes of all agents
};

class Ascent {
 public:
  Ascent(GlmmEvidence& evidence, Form form, std::size_t agents, std::size_t extras,
         const GlmmOptions& options)
      : evidence_(evidence),
        agents_(static_cast<double>(agents)),
        form_(form),
        p_(evidence.coefficients()),
        e_(extras),
        o_(options) {}

  GlmmPoint point(const Vector& theta) const {
    return {Vector(theta.begin(), theta.begin() + offset(p_)),
            form_.root({theta.data() + p_, form_.size()}),
            Vector(theta.end() - offset(e_), theta.end())};
  }

  // From theta to a maximum. needed: give up when it cannot be reached.
  Glmm run(Vector theta, double needed) {
    Place here;
    here.theta = std::move(theta);
    evaluate(here);
    measure(here);
    int round = 1, still = 0;
    bool converged = false;
    while (round < o_.rounds && !converged) {
      if (settle_zeros(here)) evaluate(here), measure(here), ++round;
      const Vector raw = precondition(here.slope);
      const double promise = dot(raw, here.slope) / 2;
      const double floor = std::max(o_.tolerance, 1e-15 * std::abs(here.value));
      if (promise <= floor && !leave_zero(here)) {
        converged = true;
        break;
      }
      Place next = step(here, raw, round);
      const double gain = next.value - here.value;
      if (!(gain > -1e-9 * (1 + std::abs(here.value)))) {  // no step raises it
        if (pairs_.empty()) {
          converged = promise < 1e-6;
          break;
        }
        pairs_.clear();
        evaluate(here), measure(here), ++round;
        continue;
      }
      remember(here, next);
      here = std::move(next);
      still = gain <= 1e-13 * (1 + std::abs(here.value)) ? still + 1 : 0;
      // Along a flat ridge the numbers may wander without end at the same evidence.
      gains_.push_back(gain);
      double recent = 0;
      const std::size_t window = o_.enough > 0 ? kFew : kRecent;
      for (std::size_t k = gains_.size() - std::min(window, gains_.size()); k < gains_.size(); ++k)
        recent += gains_[k];
      const double ridge = std::max(kRidge, o_.enough * std::abs(here.value));
      far_ = far_ && gain > kFar * std::abs(here.value);
      converged = still >= 3 || (gains_.size() >= window && recent < ridge);
      if (form_.full() && round > kFullTrial && here.value + 10 * kFullTrial * gain < needed) break;
    }
    return result(here, round, converged && here.found);
  }

 private:
  static std::ptrdiff_t offset(std::size_t n) { return static_cast<std::ptrdiff_t>(n); }
  std::span<const double> phi(const Vector& theta) const {
    return {theta.data() + p_, form_.size()};
  }

  void evaluate(Place& place) {
    const GlmmPoint at = point(place.theta);
    sums_ = &evidence_(at, form_.full());
    place.log_likelihood = sums_->value;
    place.found = sums_->unfinished == 0;
    place.value = sums_->value - o_.centre_precision * squared_norm(at.centre) / 2;
    if (!std::isfinite(place.value)) place.value = -std::numeric_limits<double>::infinity();
    place.slope = sums_->centre;
    for (std::size_t j = 0; j < p_; ++j) place.slope[j] -= o_.centre_precision * at.centre[j];
    const Vector spread = form_.slope(phi(place.theta), *sums_);
    place.slope.insert(place.slope.end(), spread.begin(), spread.end());
    place.slope.insert(place.slope.end(), sums_->psi.begin(), sums_->psi.end());
  }
  bool em() const { return o_.evidence.bound && far_ && !form_.full(); }
  // The metric of the place evaluated last.
  void measure(const Place& place) {
    Matrix H = sums_->information;
    add_to_diagonal(o_.centre_precision, H);
    centre_ = Positive(std::move(H));
    spread_ = Positive(em() ? form_.em_curvature(phi(place.theta), agents_)
                            : form_.curvature(phi(place.theta), *sums_));
    Matrix extra = sums_->psi_information;
    add_to_diagonal(1, extra);
    extra_ = Positive(std::move(extra));
  }
  Vector precondition(std::span<const double> slope) const {
    Vector step = centre_.solve(slope.first(p_));
    const Vector spread = spread_.solve(slope.subspan(p_, form_.size()));
    const Vector extra = extra_.solve(slope.last(e_));
    step.insert(step.end(), spread.begin(), spread.end());
    step.insert(step.end(), extra.begin(), extra.end());
    return step;
  }

  // L-BFGS around the metric of this place.
  Vector direction(const Place& here) const {
    Vector q = here.slope, alpha;
    for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair) {
      alpha.push_back(dot(pair->step, q) / pair->product);
      for (std::size_t j = 0; j < q.size(); ++j) q[j] -= alpha.back() * pair->change[j];
    }
    Vector r = precondition(q);
    for (const Pair& pair : pairs_) {
      const double beta = dot(pair.change, r) / pair.product;
      for (std::size_t j = 0; j < r.size(); ++j) r[j] += (alpha.back() - beta) * pair.step[j];
      alpha.pop_back();
    }
    return r;
  }
  Place step(const Place& here, const Vector& raw, int& round) {
    Vector along = direction(here);
    clip(here, along);
    double rise = dot(along, here.slope);
    if (!(rise > 0.01 * dot(raw, here.slope)))
      pairs_.clear(), along = raw, clip(here, along), rise = dot(along, here.slope);
    const double slack = 1e-13 * (1 + std::abs(here.value));
    Place next;
    for (double share = limit(here, along); share > 1e-8;) {
      next.theta = here.theta;
      for (std::size_t j = 0; j < along.size(); ++j) next.theta[j] += share * along[j];
      for (std::size_t j = along.size() - e_; j < along.size(); ++j)
        next.theta[j] = std::clamp(next.theta[j], -kLargestExtra, kLargestExtra);
      evaluate(next), ++round;
      if (next.value >= here.value + 1e-4 * share * rise - slack) {
        measure(next);
        return next;
      }
      // Where a parabola through both ends has its top.
      const double fall = here.value + share * rise - next.value;
      const double top = std::isfinite(fall) ? share * rise / (2 * fall) : 0.1;
      share *= std::clamp(top, 0.1, 0.5);
    }
    next.value = -std::numeric_limits<double>::infinity();
    return next;
  }
  // Steps of expectation maximisation at most double a deviation, or halve it.
  void clip(const Place& here, Vector& along) const {
    for (std::size_t j = p_; j < p_ + form_.size() && em(); ++j)
      along[j] = std::clamp(along[j], -here.theta[j] / 2, here.theta[j]);
  }
  // Deviations of random effects, and of nothing else, may jump far in flat places.
  double limit(const Place& here, const Vector& along) const {
    double largest = 0, step = 0;
    for (std::size_t j = p_; j < along.size(); ++j) {
      largest = std::max(largest, std::abs(here.theta[j]));
      step = std::max(step, std::abs(along[j]));
    }
    const double allowed = 2 * std::max(largest, 0.3);
    return step > allowed ? allowed / step : 1;
  }

  struct Pair {
    Vector step, change;  // change: slope before minus slope after
    double product;
  };
  void remember(const Place& from, const Place& to) {
    Pair pair{to.theta, from.slope, 0};
    for (std::size_t j = 0; j < pair.step.size(); ++j) {
      pair.step[j] -= from.theta[j];
      pair.change[j] -= to.slope[j];
    }
    pair.product = dot(pair.step, pair.change);
    if (!(pair.product > 1e-10 * norm(pair.step) * norm(pair.change))) return;
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > kPairs) pairs_.pop_front();
  }

  // Deviations that are as good as 0, and would fall further, become 0.
  bool settle_zeros(Place& place) {
    if (form_.full()) return false;
    double largest = 0;
    for (double v : phi(place.theta)) largest = std::max(largest, v * v);
    bool changed = false;
    for (std::size_t a = 0; a < form_.size(); ++a) {
      double& v = place.theta[p_ + a];
      if (v == 0 || v * v > kNothing * std::max(largest, 1e-3) || place.slope[p_ + a] * v > 0)
        continue;
      v = 0, changed = true;
    }
    return changed;
  }
  // In phi a variance of 0 is stationary; where the evidence grows with it, it is none to stay at.
  bool leave_zero(Place& place) {
    if (form_.full() || left_ > 2) return false;
    bool changed = false;
    for (std::size_t a = 0; a < form_.size(); ++a) {
      double rise = 0;
      for (std::size_t j = 0; j < sums_->D_slope.cols(); ++j)
        if (form_.kind() == Covariance::kScalar || j == a) rise += sums_->D_slope(0, j);
      if (place.theta[p_ + a] == 0 && rise > 1e-6) place.theta[p_ + a] = 0.02, changed = true;
    }
    if (changed) ++left_, pairs_.clear(), evaluate(place), measure(place);
    return changed;
  }

  Glmm result(Place& place, int rounds, bool converged) {
    evaluate(place);
    Glmm r;
    r.covariance = form_.kind();
    r.point = point(place.theta);
    r.D = multiply(r.point.root, transposed(r.point.root));
    Matrix H = sums_->information;
    add_to_diagonal(o_.centre_precision, H);
    r.centre_cov = Ldlt(H).inverse();
    symmetrise(r.centre_cov);
    r.spread_cov = form_.spread_cov(*sums_);
    const Vector spread(phi(place.theta).begin(), phi(place.theta).end());
    r.numbers = form_.full()
                    ? form_.size()
                    : spread.size() -
                          static_cast<std::size_t>(std::count(spread.begin(), spread.end(), 0.0));
    r.log_likelihood = place.log_likelihood;
    r.rounds = rounds;
    r.converged = converged;
    if (!phi(place.theta).empty()) {
      const Vector values = symmetric_eigenvalues(r.D);
      r.singular = values.front() <= kNothing * std::max(values.back(), 1e-3);
    }
    return r;
  }

  GlmmEvidence& evidence_;
  double agents_;
  Form form_;
  std::size_t p_, e_;
  const GlmmOptions& o_;
  const EvidenceSums* sums_ = nullptr;
  Positive centre_, spread_, extra_;
  std::deque<Pair> pairs_;
  Vector gains_;
  int left_ = 0;
  bool far_ = true;  // from the maximum
};

void set_bic(Glmm& model, std::size_t agents) {
  model.bic = -2 * model.log_likelihood +
              static_cast<double>(model.numbers) * std::log(static_cast<double>(agents));
}

// Intercepts and further parameters of a model without columns.
Vector start_of(const GlmmRows& rows, const Likelihood& likelihood, std::size_t spread,
                Team& team) {
  AgentSum sum("totals", likelihood.totals(), rows.agents, team);
  const double* const totals = sum([&](std::size_t i, double* out) {
    for (const GlmmRows::Run& run : rows.runs[rows.at(i)])
      likelihood.add_totals(rows.block(run.from, run.to - run.from), out);
  });
  const Likelihood::Start start = likelihood.start({totals, likelihood.totals()});
  Vector theta(likelihood.predictors() * rows.d);
  for (std::size_t a = 0; a < likelihood.predictors(); ++a) theta[a * rows.d] = start.intercepts[a];
  theta.insert(theta.end(), spread, kStartDeviation);
  theta.insert(theta.end(), start.psi.begin(), start.psi.end());
  return theta;
}

Vector start_from(const Glmm& model, const Form& form) {
  Vector theta = model.point.centre;
  const Vector phi = form.phi(model.D);
  theta.insert(theta.end(), phi.begin(), phi.end());
  theta.insert(theta.end(), model.point.psi.begin(), model.point.psi.end());
  return theta;
}

}  // namespace

GlmmLearnt fit_glmm(const GlmmRows& rows, const Likelihood& likelihood, const GlmmOptions& o,
                    Team& team) {
  GlmmEvidence::Options wanted = o.evidence;
  if (rows.agents == 1) wanted.random.clear();  // one agent says nothing of how agents differ
  GlmmEvidence evidence(rows, likelihood, wanted, team);
  const std::size_t q = evidence.effects();
  GlmmLearnt learnt;
  learnt.random = wanted.random;
  learnt.predictors = likelihood.predictors();
  learnt.columns = rows.d;
  double best = std::numeric_limits<double>::infinity();
  const Glmm* from = o.start;
  const auto attempt = [&](Covariance kind, double needed) {
    const Form form(kind, q, wanted.random.size());
    Ascent ascent(evidence, form, rows.agents, likelihood.extras(), o);
    const Vector start =
        from != nullptr ? start_from(*from, form) : start_of(rows, likelihood, form.size(), team);
    learnt.tried.push_back(ascent.run(start, needed));
    set_bic(learnt.tried.back(), rows.agents);
    best = std::min(best, learnt.tried.back().bic);
  };
  constexpr double kAnything = -std::numeric_limits<double>::infinity();
  if (o.start != nullptr) {
    attempt(o.start->covariance, kAnything);
  } else {
    learnt.tried.reserve(3);  // `from` points into it
    const bool one = q <= 1, only_full = !o.scalar && !o.diagonal;
    if (o.scalar || one || only_full) attempt(Covariance::kScalar, kAnything);
    if (!learnt.tried.empty()) from = &learnt.tried.back();
    if (o.diagonal && !one) attempt(Covariance::kDiagonal, kAnything), from = &learnt.tried.back();
    const auto entries = static_cast<double>(q * (q + 1) / 2);
    if (o.full && !one && q * (q + 1) / 2 <= kMostEntries && (rows.agents >= 2 * q || only_full)) {
      const double needed = (entries * std::log(static_cast<double>(rows.agents)) - best) / 2;
      attempt(Covariance::kFull, only_full ? kAnything : needed);
      if (only_full) learnt.tried.erase(learnt.tried.begin());
    }
  }
  learnt.best = *std::min_element(learnt.tried.begin(), learnt.tried.end(),
                                  [](const Glmm& a, const Glmm& b) { return a.bic < b.bic; });
  evidence(learnt.best.point, false);
  learnt.modes = evidence.modes();
  learnt.curvatures = evidence.curvatures();
  return learnt;
}

}  // namespace affpcl
