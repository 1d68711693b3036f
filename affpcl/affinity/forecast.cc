#include "affpcl/affinity/forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

// No eigenvalue of a covariance is below 0.
void raise_to_zero(Vector& values) {
  for (double& v : values) v = std::max(v, 0.0);
}

// k with k (1 - sum e / (e + k) / rows) = strength: between strength and strength + sum e / rows.
double effective(const Vector& e, double rows, double strength) {
  double low = strength, high = strength + sum(e) / rows;
  Vector kept(e.size());
  for (int step = 0; step < 100; ++step) {
    const double k = (low + high) / 2;
    for (std::size_t j = 0; j < e.size(); ++j) kept[j] = e[j] / (e[j] + k);
    (k * (1 - sum(kept) / rows) > strength ? high : low) = k;
  }
  return high;
}

}  // namespace

Forecast::Forecast(std::span<const double> second, double rows, const Variances& variances,
                   std::span<const double> centre_cov)
    : d_(static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(second.size()))))),
      rows_(rows),
      s2_(variances.s2) {
  const MatrixView S(second.data(), d_, d_), H(centre_cov.data(), d_, d_);
  Matrix covariance(d_ - 1, d_ - 1);
  for (std::size_t j = 1; j < d_; ++j)
    for (std::size_t k = 1; k < d_; ++k) covariance(j - 1, k - 1) = S(j, k) - S(0, j) * S(0, k);
  SymmetricEigen columns = symmetric_eigen(covariance);
  raise_to_zero(columns.values);
  values_ = columns.values;
  vectors_ = columns.vectors.all();
  add_strengths();

  // Rows of root are those of L', L L' = D; of LQ, (L Q)' with Q the eigenvectors of L'S L.
  const Matrix root = semidefinite_root({variances.D.data(), d_, d_});
  SymmetricEigen seen = symmetric_eigen(multiply(root, multiply(S, transposed(root))));
  Vector& e = seen.values;
  raise_to_zero(e);
  const double k = effective(e, rows, s2_ / rows);
  const Matrix LQ = multiply(seen.vectors, root);
  Matrix kept = LQ;
  for (std::size_t j = 0; j < d_; ++j) {
    const double inverse = 1 / (e[j] + k);
    for (double& v : kept.row(j)) v *= inverse;
    e[j] *= inverse;
  }
  const double g = squared_norm(e) / rows;
  // F = I - P S with P = L Q (e + k)^-1 Q'L'; bias = F'S F.
  Matrix F = multiply(S, transposed(multiply(transposed(kept), LQ)));  // F', that is
  for (double& v : F.all()) v = -v;
  for (std::size_t j = 0; j < d_; ++j) F(j, j) += 1;
  const Matrix bias = multiply(F, multiply(S, transposed(F)));
  bias_ = bias.all();
  double trace = 0;
  for (std::size_t i = 0; i < d_; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < d_; ++j) sum += bias(j, i) * H(i, j);
    trace += sum;
  }
  fixed_ = trace + s2_ * g;
  scale_ = 1 / std::max(1e-6, 1 - g);
}

void Forecast::add_strengths() {
  const std::size_t p = d_ - 1;
  const double rows = std::max(1.0, rows_ - 1);  // one is spent on the intercept
  Vector kept(p);
  for (int q = -24; q <= 16; ++q) {
    const double k = std::pow(10.0, q / 4.0);
    for (std::size_t j = 0; j < p; ++j) kept[j] = values_[j] / (values_[j] + k);
    if (sum(kept) > 0.95 * rows) continue;
    const double g = squared_norm(kept) / rows;
    Strength s{Vector(p), s2_ * g / (1 - g)};
    for (std::size_t j = 0; j < p; ++j)
      s.lost[j] = values_[j] * (1 - kept[j]) * (1 - kept[j]) / (1 - g);
    strengths_.push_back(std::move(s));
  }
}

double Forecast::alone(std::span<const double> x) const {
  const std::size_t p = d_ - 1;
  const Vector& e = values_;
  Vector c2 = multiply(MatrixView(vectors_.data(), p, p), x.subspan(1));
  for (double& v : c2) v *= v;
  double best = dot(e, c2);  // all slopes 0
  for (const Strength& s : strengths_) best = std::min(best, dot(s.lost, c2) + s.noise);
  return best + (best + s2_) / rows_;
}

double Forecast::personalised(std::span<const double> u) const {
  return (dot(u, multiply(transposed({bias_.data(), d_, d_}), u)) + fixed_) * scale_;
}

}  // namespace affpcl
