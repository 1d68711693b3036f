// Expected log-likelihoods of rows over normal linear predictors.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/mixed/family.h"
#include "affpcl/mixed/glmm_evidence.h"

namespace affpcl {
namespace {

constexpr int kPoints = 20;
constexpr double kNoVariance = 1e-8;  // below it the mean alone counts
constexpr int kSteps = 50;            // to the place of a bound, at most
constexpr double kNear = 1e-11;       // of that place

// E log sum_k exp(b_k'eta) <= log sum_k exp(b_k'mean + (b_k - a)'V(b_k - a) / 2) for any a (Knowles
// and Minka 2011). It is convex in a, and least where a is the mean of b under the probabilities of
// the sum's terms.
class TiltedBound {
 public:
  explicit TiltedBound(const Matrix& basis)
      : B_(basis),
        m_(basis.cols()),
        V_(m_, m_),
        C_(m_, m_),
        p_(basis.rows()),
        mean_(m_),
        a_(m_),
        from_(m_),
        step_(m_),
        logits_(basis.rows()) {}

  double log_sum() const { return value_; }
  const Vector& mean() const { return mean_; }
  // Minus twice the slope in V of the expected log-likelihood.
  double weight(std::size_t a, std::size_t b) const {
    double sum = 0;
    for (std::size_t k = 0; k < p_.size(); ++k)
      sum += p_[k] * (B_(k, a) - a_[a]) * (B_(k, b) - a_[b]);
    return sum;
  }
  double logit(std::size_t k) const { return logits_[k]; }

  // eta [m] and V [pairs], with this stride.
  void at(const double* eta, const double* V, std::size_t stride) {
    for (std::size_t a = 0, k = 0; a < m_; ++a)
      for (std::size_t b = 0; b <= a; ++b, ++k) V_(a, b) = V_(b, a) = V[k * stride];
    for (std::size_t k = 0; k < p_.size(); ++k) {
      logits_[k] = 0;
      for (std::size_t a = 0; a < m_; ++a) logits_[k] += B_(k, a) * eta[a * stride];
    }
    std::fill(a_.begin(), a_.end(), 0.0);
    evaluate();
    for (int s = 0; s < kSteps; ++s) {
      for (std::size_t a = 0; a < m_; ++a) step_[a] = mean_[a] - a_[a];
      if (squared_norm(step_) < kNear * kNear) break;
      newton();
    }
  }

 private:
  void evaluate() {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t k = 0; k < p_.size(); ++k) {
      double square = 0;
      for (std::size_t a = 0; a < m_; ++a)
        for (std::size_t b = 0; b < m_; ++b)
          square += (B_(k, a) - a_[a]) * V_(a, b) * (B_(k, b) - a_[b]);
      p_[k] = logits_[k] + square / 2;
      top = std::max(top, p_[k]);
    }
    for (double& p : p_) sum += p = std::exp(p - top);
    for (double& p : p_) p /= sum;
    value_ = top + std::log(sum);
    for (std::size_t a = 0; a < m_; ++a) {
      mean_[a] = 0;
      for (std::size_t k = 0; k < p_.size(); ++k) mean_[a] += p_[k] * B_(k, a);
    }
  }
  // The second derivative in a is V + V C V, with C the covariance of b: (I + C V) step = mean - a.
  void newton() {
    for (std::size_t a = 0; a < m_; ++a)
      for (std::size_t b = 0; b < m_; ++b) {
        double sum = -mean_[a] * mean_[b];
        for (std::size_t k = 0; k < p_.size(); ++k) sum += p_[k] * B_(k, a) * B_(k, b);
        C_(a, b) = sum;
      }
    Matrix M = multiply(C_, V_);
    for (std::size_t a = 0; a < m_; ++a) M(a, a) += 1;
    lu_.factor(M);
    from_ = step_;
    lu_.solve(from_, step_);
    from_ = a_;
    const double old = value_;
    for (double share = 1; share > 1e-6; share /= 2) {
      for (std::size_t a = 0; a < m_; ++a) a_[a] = from_[a] + share * step_[a];
      evaluate();
      if (value_ <= old + 1e-14 * (1 + std::abs(old))) break;
    }
  }

  const Matrix& B_;
  std::size_t m_;
  Matrix V_, C_;
  Vector p_, mean_, a_, from_, step_, logits_;
  Lu lu_;
  double value_ = 0;
};

double multinomial_bound(const RowBlock& rows, const Matrix& B, const double* eta, const double* V,
                         double* g, double* w) {
  TiltedBound bound(B);
  double value = 0;
  const std::size_t n = rows.count, m = B.cols();
  for (std::size_t r = 0; r < n; ++r) {
    bound.at(eta + r, V + r, n);
    const double weight = rows.weight == nullptr ? 1 : rows.weight[r];
    const auto k = static_cast<std::size_t>(rows.y[r]);
    value += weight * (bound.logit(k) - bound.log_sum());
    for (std::size_t a = 0, at = 0; a < m; ++a) {
      g[a * n + r] = weight * (B(k, a) - bound.mean()[a]);
      for (std::size_t b = 0; b <= a; ++b, ++at) w[at * n + r] = weight * bound.weight(a, b);
    }
  }
  return value;
}

}  // namespace

double Likelihood::expect(const RowBlock& rows, const double* eta, const double* V, double* g,
                          double* w) const {
  if (family_ == Family::kMultinomial) return multinomial_bound(rows, basis_, eta, V, g, w);
  static const GaussHermite kRule(kPoints);
  const std::size_t n = rows.count;
  Vector at(n), slopes(n);
  double value = 0;
  curve(rows, {}, eta, slopes.data(), w);  // where there is no variance
  std::fill(g, g + n, 0.0);
  for (std::size_t r = 0; r < n; ++r)
    if (V[r] > kNoVariance) w[r] = 0;
  for (std::size_t k = 0; k < kRule.nodes.size(); ++k) {
    const double share = kRule.weights[k] / std::sqrt(std::numbers::pi);
    for (std::size_t r = 0; r < n; ++r) at[r] = eta[r] + std::sqrt(2 * V[r]) * kRule.nodes[k];
    value += share * slope(rows, {}, at.data(), slopes.data());
    for (std::size_t r = 0; r < n; ++r) {
      g[r] += share * slopes[r];
      // The slope in V of this very sum, not of the integral.
      if (V[r] > kNoVariance) w[r] -= share * slopes[r] * kRule.nodes[k] / std::sqrt(V[r] / 2);
    }
  }
  return value;
}

}  // namespace affpcl
