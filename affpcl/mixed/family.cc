#include "affpcl/mixed/family.h"

#include <algorithm>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/table/class_basis.h"

namespace affpcl {
namespace {

// A mean on the log scale is kept below e^50: a step that goes further is refused by its value.
constexpr double kLargestLog = 50;

double log_gamma(double x) { return boost::math::lgamma(x); }
double digamma(double x) { return boost::math::digamma(x); }
double logistic(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// What a row adds: log-likelihood, slope, weight, and the slope of the weight.
struct Terms {
  double l, g, w, third;
};
// Derivatives in one of psi: of the log-likelihood with its constant, of g, of w.
struct ExtraTerms {
  double l, g, w;
};

// One family each: terms(y, trials, eta), constant(y, trials), extra(k, y, eta), mean(eta).
struct Gaussian {
  explicit Gaussian(std::span<const double> psi) : s2(std::exp(psi[0])) {}
  Terms terms(double y, double, double eta) const {
    const double r = y - eta;
    return {-r * r / (2 * s2), r / s2, 1 / s2, 0};
  }
  double constant(double, double) const { return -std::log(2 * std::numbers::pi * s2) / 2; }
  ExtraTerms extra(std::size_t, double y, double eta) const {  // psi = log s^2
    const double r = y - eta;
    return {r * r / (2 * s2) - 0.5, -r / s2, -1 / s2};
  }
  double mean(double eta) const { return eta; }
  double s2;
};

struct StudentT {
  explicit StudentT(std::span<const double> psi) : s2(std::exp(psi[0])), nu(std::exp(psi[1])) {}
  // The log-likelihood is not concave: w is expected information, which does not move with eta.
  Terms terms(double y, double, double eta) const {
    const double r = y - eta, q = nu * s2 + r * r;
    return {-(nu + 1) / 2 * std::log1p(r * r / (nu * s2)), (nu + 1) * r / q,
            (nu + 1) / ((nu + 3) * s2), 0};
  }
  double constant(double, double) const {
    return log_gamma((nu + 1) / 2) - log_gamma(nu / 2) - std::log(nu * std::numbers::pi * s2) / 2;
  }
  ExtraTerms extra(std::size_t k, double y, double eta) const {  // psi = log s^2, log nu
    const double r = y - eta, z = r * r / s2, q = nu + z;
    if (k == 0)
      return {(nu + 1) * z / (2 * q) - 0.5, -(nu + 1) * nu * r / (s2 * q * q),
              -(nu + 1) / ((nu + 3) * s2)};
    return {nu * (digamma((nu + 1) / 2) / 2 - digamma(nu / 2) / 2 - 1 / (2 * nu) -
                  std::log1p(z / nu) / 2 + (nu + 1) * z / (2 * nu * q)),
            nu * r * (z - 1) / (s2 * q * q), nu * 2 / ((nu + 3) * (nu + 3) * s2)};
  }
  double mean(double eta) const { return eta; }
  double s2, nu;
};

struct Binomial {
  explicit Binomial(std::span<const double>) {}
  Terms terms(double y, double n, double eta) const {
    // One exponential and one logarithm a row.
    const double e = std::exp(-std::abs(eta)), up = 1 / (1 + e), down = e * up;
    const double p = eta >= 0 ? up : down, w = n * up * down;
    return {y * eta - n * (std::max(eta, 0.0) + std::log1p(e)), y - n * p, w, w * (1 - 2 * p)};
  }
  double constant(double y, double n) const {
    return n == 1 ? 0 : log_gamma(n + 1) - log_gamma(y + 1) - log_gamma(n - y + 1);
  }
  ExtraTerms extra(std::size_t, double, double) const { return {0, 0, 0}; }
  double mean(double eta) const { return logistic(eta); }
};

struct Poisson {
  explicit Poisson(std::span<const double>) {}
  Terms terms(double y, double, double eta) const {
    const double mu = std::exp(std::min(eta, kLargestLog));
    return {y * eta - mu, y - mu, mu, mu};
  }
  double constant(double y, double) const { return -log_gamma(y + 1); }
  ExtraTerms extra(std::size_t, double, double) const { return {0, 0, 0}; }
  double mean(double eta) const { return std::exp(eta); }
};

struct NegativeBinomial {  // variance mu + mu^2 / k
  explicit NegativeBinomial(std::span<const double> psi) : k(std::exp(psi[0])) {}
  Terms terms(double y, double, double eta) const {
    const double mu = std::exp(std::min(eta, kLargestLog)), c = k + mu;
    const double w = (y + k) * k * mu / (c * c);
    return {y * eta - (y + k) * std::log(c), k * (y - mu) / c, w, w * (k - mu) / c};
  }
  double constant(double y, double) const {
    return log_gamma(y + k) - log_gamma(k) - log_gamma(y + 1) + k * std::log(k);
  }
  ExtraTerms extra(std::size_t, double y, double eta) const {  // psi = log k
    const double mu = std::exp(std::min(eta, kLargestLog)), c = k + mu;
    return {k * (digamma(y + k) - digamma(k) + std::log(k) + 1 - std::log(c) - (y + k) / c),
            k * (y - mu) * mu / (c * c),
            k * mu * ((y + 2 * k) * c - 2 * (y + k) * k) / (c * c * c)};
  }
  double mean(double eta) const { return std::exp(eta); }
  double k;
};

struct Gamma {  // variance mu^2 / a
  explicit Gamma(std::span<const double> psi) : a(std::exp(psi[0])) {}
  Terms terms(double y, double, double eta) const {
    const double q = a * y * std::exp(std::min(-eta, kLargestLog));
    return {-a * eta - q, q - a, q, -q};
  }
  double constant(double y, double) const {
    return a * std::log(a) + (a - 1) * std::log(y) - log_gamma(a);
  }
  ExtraTerms extra(std::size_t, double y, double eta) const {  // psi = log a
    const double q = y * std::exp(std::min(-eta, kLargestLog));
    return {a * (std::log(a) + 1 + std::log(y) - digamma(a) - eta - q), a * (q - 1), a * q};
  }
  double mean(double eta) const { return std::exp(eta); }
  double a;
};

// P(y <= k) = logistic(t_k - eta) with t_0 = 0 (the intercept takes its place) and
// t_k = t_(k-1) + exp psi_(k-1).
struct Ordinal {
  explicit Ordinal(std::span<const double> psi) : gaps(psi.size()), at(psi.size() + 1) {
    for (std::size_t k = 0; k < psi.size(); ++k)
      gaps[k] = std::exp(psi[k]), at[k + 1] = at[k] + gaps[k];
  }
  struct Edges {  // of a class: F at its upper and lower threshold, f = F (1 - F), and their
                  // difference, which is the probability
    double F, f, G, h, p, log_p;
  };
  Edges edges(double y, double eta) const {
    const auto k = static_cast<std::size_t>(y);
    const bool top = k == at.size(), bottom = k == 0;
    const double a = top ? 0 : at[k] - eta, b = bottom ? 0 : at[k - 1] - eta;
    Edges e{1, 0, 0, 0, 0, 0};
    if (!top) e.F = logistic(a), e.f = e.F * logistic(-a);
    if (!bottom) e.G = logistic(b), e.h = e.G * logistic(-b);
    // F - G = F (1 - G) (1 - exp(b - a)), without cancellation.
    e.log_p = (top ? 0 : -softplus(-a)) + (bottom ? 0 : -softplus(b)) +
              (top || bottom ? 0 : std::log(-std::expm1(b - a)));
    e.p = std::exp(e.log_p);
    return e;
  }
  Terms terms(double y, double, double eta) const {
    const Edges e = edges(y, eta);
    return {e.log_p, e.F + e.G - 1, e.f + e.h, -e.f * (1 - 2 * e.F) - e.h * (1 - 2 * e.G)};
  }
  double constant(double, double) const { return 0; }
  ExtraTerms extra(std::size_t k, double y, double eta) const {
    const Edges e = edges(y, eta);
    const auto c = static_cast<std::size_t>(y);
    ExtraTerms t{0, 0, 0};
    // gaps[k] moves the thresholds above k.
    if (c < at.size() && c > k) t.l += e.f / e.p, t.g += e.f, t.w += e.f * (1 - 2 * e.F);
    if (c > 0 && c - 1 > k) t.l -= e.h / e.p, t.g += e.h, t.w += e.h * (1 - 2 * e.G);
    return {t.l * gaps[k], t.g * gaps[k], t.w * gaps[k]};
  }
  double mean(double eta) const { return eta; }
  Vector gaps, at;
};

// f(Family type{psi}) for the families with one linear predictor.
template <class F>
auto with_family(Family family, std::span<const double> psi, F f) {
  switch (family) {
    case Family::kT:
      return f(StudentT(psi));
    case Family::kBinomial:
      return f(Binomial(psi));
    case Family::kPoisson:
      return f(Poisson(psi));
    case Family::kNegativeBinomial:
      return f(NegativeBinomial(psi));
    case Family::kGamma:
      return f(Gamma(psi));
    case Family::kOrdinal:
      return f(Ordinal(psi));
    default:
      return f(Gaussian(psi));
  }
}

// f(row, y, weight, trials)
template <class F>
void each_row(const RowBlock& rows, F f) {
  for (std::size_t r = 0; r < rows.count; ++r)
    f(r, rows.y[r], rows.weight == nullptr ? 1.0 : rows.weight[r],
      rows.trials == nullptr ? 1.0 : rows.trials[r]);
}

// A row's classes at its linear predictors: logits B eta, probabilities p and their mean B'p.
struct Softmax {
  explicit Softmax(const Matrix& basis)
      : B(basis), m(basis.cols()), logits(basis.rows()), p(basis.rows()), mean(basis.cols()) {}
  void at(const double* eta, std::size_t stride) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t k = 0; k < p.size(); ++k) {
      logits[k] = 0;
      for (std::size_t a = 0; a < m; ++a) logits[k] += B(k, a) * eta[a * stride];
      top = std::max(top, logits[k]);
    }
    for (std::size_t k = 0; k < p.size(); ++k) sum += p[k] = std::exp(logits[k] - top);
    std::fill(mean.begin(), mean.end(), 0.0);
    for (std::size_t k = 0; k < p.size(); ++k) {
      p[k] /= sum;
      for (std::size_t a = 0; a < m; ++a) mean[a] += p[k] * B(k, a);
    }
    log_sum = top + std::log(sum);
  }
  const Matrix& B;
  std::size_t m;
  Vector logits, p, mean;
  double log_sum = 0;
};

double multinomial(const RowBlock& rows, const Matrix& B, const double* eta, double* g, double* w) {
  double value = 0;
  Softmax s(B);
  const std::size_t n = rows.count;
  each_row(rows, [&](std::size_t r, double y, double weight, double) {
    s.at(eta + r, n);
    const auto k = static_cast<std::size_t>(y);
    value += weight * (s.logits[k] - s.log_sum);
    for (std::size_t a = 0, at = 0; a < s.m; ++a) {
      g[a * n + r] = weight * (B(k, a) - s.mean[a]);
      for (std::size_t b = 0; b <= a && w != nullptr; ++b, ++at) {
        double square = 0;
        for (std::size_t c = 0; c < s.p.size(); ++c) square += s.p[c] * B(c, a) * B(c, b);
        w[at * n + r] = weight * (square - s.mean[a] * s.mean[b]);
      }
    }
  });
  return value;
}

// tr(W H) = sum_k p_k b_k'H b_k - mean'H mean, and dp_k/deta = p_k (b_k - mean).
void multinomial_third(const RowBlock& rows, const Matrix& B, const double* eta, const double* H,
                       double* T) {
  Softmax s(B);
  Vector pull(s.p.size());
  const std::size_t n = rows.count;
  each_row(rows, [&](std::size_t r, double, double weight, double) {
    s.at(eta + r, n);
    double mean = 0;
    for (std::size_t k = 0; k < s.p.size(); ++k) {
      pull[k] = 0;  // b_k'H (b_k - 2 mean)
      for (std::size_t a = 0; a < s.m; ++a)
        for (std::size_t b = 0; b < s.m; ++b)
          pull[k] += B(k, a) * H[(a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a) * n + r] *
                     (B(k, b) - 2 * s.mean[b]);
      mean += s.p[k] * pull[k];
    }
    for (std::size_t a = 0; a < s.m; ++a) {
      double sum = 0;
      for (std::size_t k = 0; k < s.p.size(); ++k) sum += s.p[k] * (pull[k] - mean) * B(k, a);
      T[a * n + r] = weight * sum;
    }
  });
}

}  // namespace

Likelihood::Likelihood(Family family, std::size_t classes)
    : family_(family),
      m_(family == Family::kMultinomial ? classes - 1 : 1),
      extras_(family == Family::kT         ? 2
              : family == Family::kOrdinal ? classes - 2
              : family == Family::kGaussian || family == Family::kNegativeBinomial ||
                      family == Family::kGamma
                  ? 1
                  : 0),
      classes_(family == Family::kMultinomial || family == Family::kOrdinal ? classes : 0),
      basis_(family == Family::kMultinomial ? class_basis(classes) : Matrix::identity(1)) {}

double Likelihood::curvature_bound(std::span<const double> psi) const {
  return family_ == Family::kT ? 1 + 3 / std::exp(psi[1]) : 1;  // (nu + 1) / nu s^2 at most
}

std::size_t Likelihood::outputs() const {
  return family_ == Family::kBinomial ? 2 : std::max<std::size_t>(classes_, 1);
}

void Likelihood::add_totals(const RowBlock& rows, double* totals) const {
  each_row(rows, [&](std::size_t, double y, double weight, double trials) {
    totals[0] += weight * trials;
    totals[1] += weight * y;
    if (classes_ > 0) totals[2 + static_cast<std::size_t>(y)] += weight;
  });
}

Likelihood::Start Likelihood::start(std::span<const double> totals) const {
  // Half a row more of everything: no logarithm of 0.
  const auto count = [&](std::size_t k) { return totals[2 + k] + 0.5; };
  const double mean = totals[1] / totals[0];
  Start at{Vector(m_), Vector(extras_)};
  switch (family_) {
    case Family::kBinomial:
      at.intercepts[0] = std::log((totals[1] + 0.5) / (totals[0] - totals[1] + 0.5));
      break;
    case Family::kMultinomial:
      for (std::size_t k = 0; k < classes_; ++k)
        for (std::size_t a = 0; a < m_; ++a) at.intercepts[a] += basis_(k, a) * std::log(count(k));
      break;
    case Family::kOrdinal: {
      double below = 0, above = 0, last = 0;
      for (std::size_t k = 0; k < classes_; ++k) above += count(k);
      for (std::size_t k = 0; k + 1 < classes_; ++k) {
        below += count(k), above -= count(k);
        const double threshold = std::log(below / above);
        if (k == 0) at.intercepts[0] = -threshold;
        if (k > 0) at.psi[k - 1] = std::log(std::max(threshold - last, 1e-3));
        last = threshold;
      }
      break;
    }
    case Family::kPoisson:
    case Family::kNegativeBinomial:
    case Family::kGamma:
      at.intercepts[0] = std::log(std::max(mean, 1e-6));
      break;
    case Family::kT:
      at.psi[1] = std::log(5.0);
      [[fallthrough]];
    default:
      at.intercepts[0] = mean;
  }
  return at;
}

double Likelihood::constant(const RowBlock& rows, std::span<const double> psi) const {
  if (family_ == Family::kMultinomial) return 0;
  return with_family(family_, psi, [&](const auto& f) {
    double value = 0;
    each_row(rows, [&](std::size_t, double y, double weight, double trials) {
      value += weight * f.constant(y, trials);
    });
    return value;
  });
}

double Likelihood::slope(const RowBlock& rows, std::span<const double> psi, const double* eta,
                         double* g) const {
  if (family_ == Family::kMultinomial) return multinomial(rows, basis_, eta, g, nullptr);
  return with_family(family_, psi, [&](const auto& f) {
    double value = 0;
    each_row(rows, [&](std::size_t r, double y, double weight, double trials) {
      const Terms t = f.terms(y, trials, eta[r]);
      value += weight * t.l;
      g[r] = weight * t.g;
    });
    return value;
  });
}

double Likelihood::curve(const RowBlock& rows, std::span<const double> psi, const double* eta,
                         double* g, double* w) const {
  if (family_ == Family::kMultinomial) return multinomial(rows, basis_, eta, g, w);
  return with_family(family_, psi, [&](const auto& f) {
    double value = 0;
    each_row(rows, [&](std::size_t r, double y, double weight, double trials) {
      const Terms t = f.terms(y, trials, eta[r]);
      value += weight * t.l;
      g[r] = weight * t.g;
      w[r] = weight * t.w;
    });
    return value;
  });
}

void Likelihood::third(const RowBlock& rows, std::span<const double> psi, const double* eta,
                       const double* H, double* T) const {
  if (family_ == Family::kMultinomial) return multinomial_third(rows, basis_, eta, H, T);
  with_family(family_, psi, [&](const auto& f) {
    each_row(rows, [&](std::size_t r, double y, double weight, double trials) {
      T[r] = weight * H[r] * f.terms(y, trials, eta[r]).third;
    });
  });
}

void Likelihood::add_extras(const RowBlock& rows, std::span<const double> psi, const double* eta,
                            const double* H, const double* a, double* out) const {
  if (extras_ == 0) return;
  with_family(family_, psi, [&](const auto& f) {
    each_row(rows, [&](std::size_t r, double y, double weight, double) {
      for (std::size_t k = 0; k < extras_; ++k) {
        const ExtraTerms t = f.extra(k, y, eta[r]);
        out[k] += weight *
                  (t.l - (H == nullptr ? 0 : H[r] * t.w / 2) - (a == nullptr ? 0 : a[r] * t.g / 2));
      }
    });
  });
}

void Likelihood::mean(std::span<const double> psi, const double* eta, double* out) const {
  if (family_ == Family::kMultinomial) {
    Softmax s(basis_);
    s.at(eta, 1);
    std::copy(s.p.begin(), s.p.end(), out);
  } else if (family_ == Family::kBinomial) {
    out[1] = logistic(*eta), out[0] = logistic(-*eta);
  } else if (family_ == Family::kOrdinal) {
    const Ordinal f(psi);
    for (std::size_t k = 0; k < classes_; ++k) out[k] = f.edges(static_cast<double>(k), *eta).p;
  } else {
    *out = with_family(family_, psi, [&](const auto& f) { return f.mean(*eta); });
  }
}

double Likelihood::variance(std::span<const double> psi, double mean) const {
  switch (family_) {
    case Family::kGaussian:
      return std::exp(psi[0]);
    case Family::kT: {
      const double nu = std::exp(psi[1]);
      return nu > 2 ? std::exp(psi[0]) * nu / (nu - 2) : std::numeric_limits<double>::infinity();
    }
    case Family::kPoisson:
      return mean;
    case Family::kNegativeBinomial:
      return mean + mean * mean / std::exp(psi[0]);
    case Family::kGamma:
      return mean * mean / std::exp(psi[0]);
    default:
      return mean * (1 - mean);
  }
}

double Likelihood::loss(std::span<const double> psi, double y, double trials,
                        const double* mean) const {
  const auto y_log = [](double a, double b) { return a > 0 ? a * std::log(a / b) : 0.0; };
  const double mu = *mean;
  switch (family_) {
    case Family::kBinomial: {
      const double p = std::max(mean[1], 1e-300), q = std::max(mean[0], 1e-300);
      return -(y * std::log(p) + (trials - y) * std::log(q)) / trials;
    }
    case Family::kMultinomial:
    case Family::kOrdinal:
      return -std::log(std::max(mean[static_cast<std::size_t>(y)], 1e-300));
    case Family::kPoisson:
      return 2 * (y_log(y, mu) - (y - mu));
    case Family::kNegativeBinomial: {
      const double k = std::exp(psi[0]);
      return 2 * (y_log(y, mu) - (y + k) * std::log((y + k) / (mu + k)));
    }
    case Family::kGamma:
      return 2 * ((y - mu) / mu - std::log(y / mu));
    default:
      return (y - mu) * (y - mu);
  }
}

}  // namespace affpcl
