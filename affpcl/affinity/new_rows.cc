#include "affpcl/affinity/new_rows.h"

#include <cmath>

namespace affpcl {
namespace {

constexpr double kPriorRows = 20;  // a coefficient, that the centre's covariance counts like

}  // namespace

NewRows::NewRows(const Frame& frame, const std::vector<std::size_t>& rows)
    : mean_(frame.d), rows_(static_cast<double>(rows.size())) {
  const std::size_t d = frame.d;
  const double prior = kPriorRows * static_cast<double>(d);
  for (const std::size_t row : rows)
    for (std::size_t j = 0; j < d; ++j) mean_[j] += frame.X[j * frame.rows + row] / rows_;
  Matrix scatter(d, d);
  for (std::size_t j = 0; j < d * d; ++j) scatter.all()[j] = prior * frame.within[j];
  Vector z(d);
  for (const std::size_t row : rows) {
    for (std::size_t j = 0; j < d; ++j) z[j] = frame.X[j * frame.rows + row] - mean_[j];
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) scatter(j, k) += z[j] * z[k];
  }
  for (double& v : scatter.all()) v /= rows_ - 1 + prior;
  root_ = semidefinite_root(scatter);
}

Vector NewRows::draw_mean(const Key& key, std::int64_t agent) const {
  Vector z(mean_.size());
  for (std::size_t j = 0; j < z.size(); ++j)
    z[j] =
        normal(key, agent, Purpose::kObjective, static_cast<std::uint32_t>(j)) / std::sqrt(rows_);
  return row(mean_, z);
}

Vector NewRows::row(const Vector& mean, const Vector& numbers) const {
  Vector z = mean;
  add_product(1, transposed(root_), numbers, z);
  return z;
}

double NewRows::square(const Vector& mean, const Vector& off) const {
  const double along = dot(mean, off);
  return along * along + squared_norm(multiply(root_, off));
}

}  // namespace affpcl
