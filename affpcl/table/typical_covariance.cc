#include "affpcl/table/typical_covariance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace affpcl {
namespace {

constexpr double kNoVariance = 1e-12;  // of the largest eigenvalue
constexpr int kDigits = 6;  // of the largest number that are kept, so that files are short

// To so many digits of the largest number.
void round_to_digits(std::span<double> x) {
  double largest = 0;
  for (double v : x) largest = std::max(largest, std::abs(v));
  if (!(largest > 0)) return;
  const int places = kDigits - static_cast<int>(std::ceil(std::log10(largest)));
  const double unit = std::pow(10.0, std::abs(places));
  for (double& v : x) v = places < 0 ? std::round(v / unit) * unit : std::round(v * unit) / unit;
}

double quadratic(MatrixView A, std::span<const double> x) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * dot(A.row(j), x);
  return sum;
}

}  // namespace

TypicalCovariance::TypicalCovariance(MatrixView typical, MatrixView second)
    : typical_(typical), second_(second) {
  symmetrise(typical_);
  SymmetricEigen eigen = symmetric_eigen(typical_);
  root_ = eigen.vectors;
  whitening_ = std::move(eigen.vectors);
  for (std::size_t k = 0; k < root_.rows(); ++k) {
    const double e = std::max(eigen.values[k], 0.0);
    const bool known = e > kNoVariance * eigen.values.back();
    for (double& v : root_.row(k)) v *= std::sqrt(e);
    for (double& v : whitening_.row(k)) v *= known ? 1 / std::sqrt(e) : 0;
  }
}

// With e, q the eigenvectors of the whitened covariance, f = root'q: cov = sum_k e_k f_k f_k', and an
// average row has the variance sum_k e_k w_k, w_k = f_k' second f_k.
void TypicalCovariance::reduce(LinearModel& m) const {
  const std::size_t d = root_.rows(), kept = std::min(d, kCovarianceDirections);
  const MatrixView cov(m.cov.data(), d, d);
  SymmetricEigen eigen =
      symmetric_eigen(multiply(whitening_, multiply(cov, transposed(whitening_))));
  const Matrix f = multiply(eigen.vectors, root_);
  Vector weight(d);
  for (std::size_t k = 0; k < d; ++k) weight[k] = quadratic(second_, f.row(k));
  std::vector<std::size_t> order(d);
  std::iota(order.begin(), order.end(), 0);
  const auto mean_from = [&](std::size_t first) {
    double up = 0, down = 0;
    for (std::size_t k = first; k < d; ++k)
      up += eigen.values[order[k]] * weight[order[k]], down += weight[order[k]];
    return down > 0 ? std::max(0.0, up / down) : 0;
  };
  const double all = mean_from(0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(eigen.values[a] - all) * weight[a] >
           std::abs(eigen.values[b] - all) * weight[b];
  });
  m.near_cov.scale = mean_from(kept);
  m.near_cov.weights.resize(kept);
  m.near_cov.directions.clear();
  for (std::size_t k = 0; k < kept; ++k) {
    m.near_cov.weights[k] = eigen.values[order[k]] - m.near_cov.scale;
    const auto row = f.row(order[k]);
    m.near_cov.directions.insert(m.near_cov.directions.end(), row.begin(), row.end());
    round_to_digits({m.near_cov.directions.data() + k * d, d});
  }
  round_to_digits(m.near_cov.weights);
  m.cov.clear();
  m.cov.shrink_to_fit();
}

}  // namespace affpcl
