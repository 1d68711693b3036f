#include "affpcl/fit/ridge.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/fit/agents.h"

namespace affpcl {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Ridge fit_ridge(const Moments& m, std::size_t agent) {
  const auto d = static_cast<Eigen::Index>(m.d);
  const std::size_t at = m.at(agent);
  const double n = m.rows[at];
  Ridge r;
  r.x.assign(m.d, 0.0);
  r.inverse.assign(m.d * m.d, 0.0);
  if (n == 0) return r;
  const Eigen::Map<const Matrix> A(m.A.data() + at * m.d * m.d, d, d);
  const Eigen::Map<const Vector> b(m.b.data() + at * m.d, d);
  const Vector mean = A.col(0).tail(d - 1) / n;
  const double mean_y = b[0] / n;
  const Matrix S = A.bottomRightCorner(d - 1, d - 1) - n * mean * mean.transpose();
  const Vector s = b.tail(d - 1) - n * mean_y * mean;
  const double syy = std::max(0.0, m.yy[at] - n * mean_y * mean_y);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(S);
  const Vector e = eigen.eigenvalues().cwiseMax(0.0);
  const Vector c = eigen.eigenvectors().transpose() * s;

  double best = std::numeric_limits<double>::infinity();
  for (int k = -24; k <= 16; ++k) {  // per row, a quarter of a decade each
    const double strength = n * std::pow(10.0, k / 4.0);
    const Vector shrunk = (e.array() + strength).inverse();
    const double freedom = 1 + e.dot(shrunk);
    if (k < 16 && freedom > 0.95 * n) continue;  // next to interpolation GCV is 0 / 0
    const Vector z = c.cwiseProduct(shrunk);
    const double rss = std::max(1e-14 * syy, syy - 2 * c.dot(z) + z.dot(e.cwiseProduct(z)));
    const double left = n - freedom;
    const double gcv = left > 0 ? rss / (left * left) : std::numeric_limits<double>::max();
    if (gcv < best) {
      best = gcv;
      r.strength = strength;
      r.freedom = freedom;
      r.s2 = left > 0 ? rss / left : 0;
    }
  }
  const Vector shrunk = (e.array() + r.strength).inverse();
  const Vector slope = eigen.eigenvectors() * c.cwiseProduct(shrunk);
  const Matrix inverse =
      eigen.eigenvectors() * shrunk.asDiagonal() * eigen.eigenvectors().transpose();
  Eigen::Map<Vector>(r.x.data() + 1, d - 1) = slope;
  r.x[0] = mean_y - mean.dot(slope);
  Eigen::Map<Matrix> full(r.inverse.data(), d, d);
  full.bottomRightCorner(d - 1, d - 1) = inverse;
  full.col(0).tail(d - 1) = -inverse * mean;
  full.row(0).tail(d - 1) = full.col(0).tail(d - 1).transpose();
  full(0, 0) = 1 / n + mean.dot(inverse * mean);
  return r;
}

Moments pooled(const Moments& m, Team& team) {
  const std::size_t d = m.d, dd = d * d;
  AgentSum sum(dd + d + 2, m.n, team);
  const double* const total = sum([&](std::size_t agent, double* out) {
    const std::size_t i = m.at(agent);
    for (std::size_t j = 0; j < dd; ++j) out[j] += m.A[i * dd + j];
    for (std::size_t j = 0; j < d; ++j) out[dd + j] += m.b[i * d + j];
    out[dd + d] += m.yy[i];
    out[dd + d + 1] += m.rows[i];
  });
  Moments all(1, d);
  all.A.assign(total, total + dd);
  all.b.assign(total + dd, total + dd + d);
  all.yy[0] = total[dd + d];
  all.rows[0] = total[dd + d + 1];
  return all;
}

}  // namespace affpcl
