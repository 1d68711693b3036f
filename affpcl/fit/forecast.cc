#include "affpcl/fit/forecast.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

namespace affpcl {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using View = Eigen::Map<const Matrix>;

// k with k (1 - sum e / (e + k) / rows) = strength: between strength and strength + sum e / rows.
double effective(const Vector& e, double rows, double strength) {
  double low = strength, high = strength + e.sum() / rows;
  for (int step = 0; step < 100; ++step) {
    const double k = (low + high) / 2;
    const double freedom = (e.array() / (e.array() + k)).sum();
    (k * (1 - freedom / rows) > strength ? high : low) = k;
  }
  return high;
}

}  // namespace

Forecast::Forecast(std::span<const double> second, double rows, const Variances& variances,
                   std::span<const double> centre_cov)
    : d_(static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(second.size()))))),
      rows_(rows),
      s2_(variances.s2) {
  const auto d = static_cast<Eigen::Index>(d_);
  const View S(second.data(), d, d), D(variances.D.data(), d, d), H(centre_cov.data(), d, d);
  const Vector mean = S.col(0).tail(d - 1);
  const Eigen::SelfAdjointEigenSolver<Matrix> columns(
      Matrix(S.bottomRightCorner(d - 1, d - 1) - mean * mean.transpose()));
  const Vector values = columns.eigenvalues().cwiseMax(0.0);
  values_.assign(values.data(), values.data() + values.size());
  vectors_.assign(columns.eigenvectors().data(),
                  columns.eigenvectors().data() + columns.eigenvectors().size());

  const Eigen::SelfAdjointEigenSolver<Matrix> spread(D);
  const Matrix L = spread.eigenvectors() *
                   spread.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal().toDenseMatrix();
  const Eigen::SelfAdjointEigenSolver<Matrix> seen(Matrix(L.transpose() * S * L));
  const Vector e = seen.eigenvalues().cwiseMax(0.0);
  const double k = effective(e, rows, s2_ / rows);
  const Vector kept = (e.array() + k).inverse();
  const Matrix LQ = L * seen.eigenvectors();
  const Matrix F = Matrix::Identity(d, d) - LQ * kept.asDiagonal() * LQ.transpose() * S;
  const double g = (e.cwiseProduct(kept)).squaredNorm() / rows;
  const Matrix bias = F.transpose() * S * F;
  bias_.assign(bias.data(), bias.data() + bias.size());
  fixed_ = (bias * H).trace() + s2_ * g;
  scale_ = 1 / std::max(1e-6, 1 - g);
}

double Forecast::alone(std::span<const double> x) const {
  const auto p = static_cast<Eigen::Index>(d_ - 1);
  const Eigen::Map<const Vector> e(values_.data(), p), slope(x.data() + 1, p);
  const Vector c2 = (View(vectors_.data(), p, p).transpose() * slope).cwiseAbs2();
  const double rows = std::max(1.0, rows_ - 1);  // one is spent on the intercept
  double best = e.dot(c2);                       // all slopes 0
  for (int q = -24; q <= 16; ++q) {
    const double k = std::pow(10.0, q / 4.0);
    const Eigen::ArrayXd kept = e.array() / (e.array() + k);
    if (kept.sum() > 0.95 * rows) continue;
    const double g = kept.square().sum() / rows;
    const double bias = (k / (e.array() + k)).square().matrix().dot(e.cwiseProduct(c2));
    best = std::min(best, (bias + s2_ * g) / (1 - g));
  }
  return best + (best + s2_) / rows_;
}

double Forecast::personalised(std::span<const double> u) const {
  const auto d = static_cast<Eigen::Index>(d_);
  const Eigen::Map<const Vector> v(u.data(), d);
  return (v.dot(View(bias_.data(), d, d) * v) + fixed_) * scale_;
}

}  // namespace affpcl
