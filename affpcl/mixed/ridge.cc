#include "affpcl/mixed/ridge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "affpcl/math/dense.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

// The columns of an agent but the first, without their means.
struct Centred {
  Centred(const Moments& m, std::size_t at)
      : mean(m.d - 1), mean_y(m.b[at * m.d] / m.rows[at]), S(m.d - 1, m.d - 1), s(m.d - 1) {
    const double n = m.rows[at];
    const MatrixView A(m.A.data() + at * m.d * m.d, m.d, m.d);
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] = A(0, j + 1) / n;
    for (std::size_t j = 0; j < mean.size(); ++j) {
      s[j] = m.b[at * m.d + j + 1] - n * mean_y * mean[j];
      for (std::size_t k = 0; k < mean.size(); ++k)
        S(j, k) = A(j + 1, k + 1) - n * mean[k] * mean[j];
    }
    syy = std::max(0.0, m.yy[at] - n * mean_y * mean_y);
  }
  Vector mean;
  double mean_y;
  Matrix S;  // scatter of the columns
  Vector s;  // with the target
  double syy;
};

}  // namespace

Ridge fit_ridge(const Moments& m, std::size_t agent) {
  const std::size_t at = m.at(agent), p = m.d - 1;
  const double n = m.rows[at];
  Ridge r;
  r.x.assign(m.d, 0.0);
  r.inverse.assign(m.d * m.d, 0.0);
  if (n == 0) return r;
  const Centred of(m, at);
  const SymmetricEigen eigen = symmetric_eigen(of.S);
  Vector e = eigen.values;
  for (double& v : e) v = std::max(v, 0.0);
  const Vector c = multiply(eigen.vectors, of.s);
  Vector shrunk(p), z(p), ez(p);
  const auto shrink = [&](double strength) {
    for (std::size_t j = 0; j < p; ++j) shrunk[j] = 1 / (e[j] + strength), z[j] = c[j] * shrunk[j];
  };

  double best = std::numeric_limits<double>::infinity();
  for (int k = -24; k <= 16; ++k) {  // per row, a quarter of a decade each
    const double strength = n * std::pow(10.0, k / 4.0);
    shrink(strength);
    const double freedom = 1 + dot(e, shrunk);
    if (k < 16 && freedom > 0.95 * n) continue;  // next to interpolation GCV is 0 / 0
    for (std::size_t j = 0; j < p; ++j) ez[j] = e[j] * z[j];
    const double rss = std::max(1e-14 * of.syy, of.syy - 2 * dot(c, z) + dot(z, ez));
    const double left = n - freedom;
    const double gcv = left > 0 ? rss / (left * left) : std::numeric_limits<double>::max();
    if (gcv < best) {
      best = gcv;
      r.strength = strength;
      r.freedom = freedom;
      r.s2 = left > 0 ? rss / left : 0;
    }
  }
  shrink(r.strength);
  const Vector slope = multiply(transposed(eigen.vectors), z);
  std::copy(slope.begin(), slope.end(), r.x.begin() + 1);
  r.x[0] = of.mean_y - dot(of.mean, slope);
  Matrix scaled = eigen.vectors;
  for (std::size_t j = 0; j < p; ++j)
    for (double& v : scaled.row(j)) v *= shrunk[j];
  const Matrix inverse = multiply(transposed(eigen.vectors), scaled);
  const Vector pull = multiply(transposed(inverse), of.mean);
  const MatrixSpan full(r.inverse.data(), m.d, m.d);
  full(0, 0) = 1 / n + dot(of.mean, pull);
  for (std::size_t j = 0; j < p; ++j) {
    full(0, j + 1) = full(j + 1, 0) = -pull[j];
    std::copy(inverse.row(j).begin(), inverse.row(j).end(), full.row(j + 1).begin() + 1);
  }
  return r;
}

Moments pooled(const Moments& m, Team& team) {
  const std::size_t d = m.d, dd = d * d;
  AgentSum sum("pooled model", dd + d + 2, m.n, team);
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
