#include "affpcl/mixed/private_moments.h"

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr double kLeastRows = 1e-3;  // of an agent whose noise leaves none
constexpr double kClear = 4;  // standard deviations of noise from which a direction is measured

Moments noised(const Release& release, std::size_t first, std::size_t agents) {
  const std::size_t d = release.width - 1, held = release.agents.size();
  Moments m(agents, d, {static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + held)});
  for (std::size_t i = 0; i < held; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t k = 0; k < d; ++k) m.A[(i * d + j) * d + k] = release.moment(i, j, k);
      m.b[i * d + j] = release.moment(i, d, j);
    }
    m.yy[i] = release.moment(i, d, d);
    m.rows[i] = m.A[i * d * d];
  }
  return m;
}

// The nearest positive semidefinite moments of held agent i; `to` is where they go.
void project(const Moments& from, std::size_t i, Moments& to, std::size_t at) {
  const std::size_t d = from.d, w = d + 1;
  Matrix joint(w, w);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) joint(j, k) = from.A[(i * d + j) * d + k];
    joint(j, d) = joint(d, j) = from.b[i * d + j];
  }
  joint(d, d) = from.yy[i];
  const SymmetricEigen eigen = symmetric_eigen(joint);
  Matrix scaled = eigen.vectors;
  for (std::size_t k = 0; k < w; ++k)
    for (double& v : scaled.row(k)) v *= std::max(eigen.values[k], 0.0);
  joint = multiply(transposed(eigen.vectors), scaled);
  symmetrise(joint);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) to.A[(at * d + j) * d + k] = joint(j, k);
    to.b[at * d + j] = joint(j, d);
  }
  to.yy[at] = joint(d, d);
  to.rows[at] = std::max(joint(0, 0), kLeastRows);
}

// A = sum_k values[k] v_k v_k' of a semidefinite A; b in that basis.
struct Directions {
  Directions(const Moments& m, std::size_t i)
      : eigen(symmetric_eigen({m.A.data() + i * m.d * m.d, m.d, m.d})),
        b(multiply(eigen.vectors,
                   Vector(m.b.begin() + static_cast<std::ptrdiff_t>(i * m.d),
                          m.b.begin() + static_cast<std::ptrdiff_t>((i + 1) * m.d)))) {
    for (double& v : eigen.values) v = std::max(v, 0.0);
  }
  Matrix with(const Vector& values) const {
    Matrix scaled = eigen.vectors;
    for (std::size_t k = 0; k < values.size(); ++k)
      for (double& v : scaled.row(k)) v *= values[k];
    Matrix out = multiply(transposed(eigen.vectors), scaled);
    symmetrise(out);
    return out;
  }
  SymmetricEigen eigen;
  Vector b;
};

// What (A, b) with noise of variance tau^2 on b say of x, as moments: x ~ b = A x + N(0, s^2 A + tau^2).
struct Equivalent {
  Equivalent(const Directions& of, double kappa) : values(of.b.size()), b(of.b.size()) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      const double a = of.eigen.values[k], share = a > 0 ? a / (a + kappa) : 0;
      values[k] = share * a, b[k] = share * of.b[k];
      explained += share > 0 ? of.b[k] * of.b[k] / (a + kappa) : 0;
    }
  }
  Vector values, b;
  double explained = 0;  // b' A^-1 b
};

}  // namespace

PrivateMoments::PrivateMoments(const Release& release, double noise, std::size_t first,
                               std::size_t agents, Team& team)
    : noise_(noise), raw_(noised(release, first, agents)), own_(raw_), together_(1, raw_.d) {
  const std::size_t d = raw_.d, dd = d * d;
  const double n = static_cast<double>(agents), variance = noise * noise;
  AgentSum sum("noised moments of all agents", dd + d + 1, agents, team);
  const double* const total = sum([&](std::size_t agent, double* out) {
    const std::size_t i = raw_.at(agent);
    add(A_of(raw_, agent).all(), {out, dd});
    add(b_of(raw_, agent), {out + dd, d});
    out[dd + d] += raw_.yy[i];
  });
  together_.A.assign(total, total + dd);
  together_.b.assign(total + dd, total + dd + d);
  together_.yy[0] = total[dd + d];
  const double N = together_.A[0];
  if (!(N > kClear * noise * std::sqrt(n)))
    throw BadInput(
        "`privacy`: the noise on the numbers of rows is as large as these; there are too few rows "
        "for this "
        "epsilon");
  Vector mean = together_.A;
  divide(mean, N);
  project(together_, 0, together_, 0);

  // An agent's number of rows, and then its moments, shrunk as far as noise explains how agents differ.
  AgentSum spread("spread of noised numbers of rows", 1, agents, team);
  const double squares = *spread([&](std::size_t agent, double* out) {
    const double apart = raw_.rows[raw_.at(agent)] - N / n;
    *out += apart * apart;
  });
  const double differ = std::max(0.0, squares / n - variance), keep = differ / (differ + variance);
  for (double& rows : raw_.rows) rows = std::max(N / n + keep * (rows - N / n), kLeastRows);
  AgentSum shape("spread of noised moments", dd + 1, agents, team);
  const double* const shapes = shape([&](std::size_t agent, double* out) {
    const std::size_t i = raw_.at(agent);
    for (std::size_t j = 0; j < dd; ++j) {
      const double apart = raw_.A[i * dd + j] - raw_.rows[i] * mean[j];
      out[j] += apart * apart;
    }
    out[dd] += raw_.rows[i] * raw_.rows[i];
  });
  Vector share(dd);  // variance of an agent's moment of a row
  for (std::size_t j = 0; j < dd; ++j)
    share[j] =
        std::max(0.0, shapes[j] - n * variance * (1 + keep * mean[j] * mean[j])) / shapes[dd];
  for (std::size_t i = 0; i < raw_.held(); ++i) {
    const double rows = raw_.rows[i];
    for (std::size_t j = 0; j < dd; ++j) {
      const double moves = rows * rows * share[j],
                   weight = agents > 1 ? moves / (moves + variance) : 1;
      raw_.A[i * dd + j] = rows * mean[j] + weight * (raw_.A[i * dd + j] - rows * mean[j]);
    }
    raw_.A[i * dd] = rows;
    project(raw_, i, own_, i);
    raw_.rows[i] = own_.rows[i];
    std::copy_n(own_.A.begin() + static_cast<std::ptrdiff_t>(i * dd), dd,
                raw_.A.begin() + static_cast<std::ptrdiff_t>(i * dd));
  }

  // A rough centre and noise variance: from all moments together, with n times the noise.
  const Directions all(together_, 0);
  s2_ = together_.yy[0] / together_.rows[0];
  for (int turn = 0; turn < 3; ++turn) {
    const double tau2 = variance * (1 + squared_norm(centre_));
    const Equivalent of(all, n * tau2 / s2_);
    Vector shrunk(d);
    for (std::size_t k = 0; k < d; ++k)
      shrunk[k] = of.b[k] / (of.values[k] + bounded_precision(d) * s2_);
    centre_ = multiply(transposed(all.eigen.vectors), shrunk);
    const double rest = together_.yy[0] - 2 * dot(together_.b, centre_) +
                        dot(centre_, multiply(MatrixView(together_.A.data(), d, d), centre_));
    s2_ = std::max(rest, noise * std::sqrt(n)) / together_.rows[0];
  }
  // Beside the centre, directions that an agent's moments measure clearly hold its random effects.
  const double tau2 = variance * (1 + squared_norm(centre_));
  AgentSum left("noise variance from noised moments", 2, agents, team);
  const double* const rest = left([&](std::size_t agent, double* out) {
    const std::size_t i = raw_.at(agent);
    const Directions of(raw_, i);
    const Vector c = multiply(of.eigen.vectors, centre_);
    double residual = raw_.yy[i] - 2 * dot(of.b, c), measured = 0;
    for (std::size_t k = 0; k < d; ++k) {
      const double a = of.eigen.values[k], off = of.b[k] - a * c[k];
      residual += a * c[k] * c[k];
      if (a * a < kClear * kClear * tau2) continue;
      residual -= (off * off - tau2) / a;
      ++measured;
    }
    out[0] += residual;
    out[1] += raw_.rows[i] - measured;
  });
  const double floor = noise * std::sqrt(n) * (1 + squared_norm(centre_)) / together_.rows[0];
  s2_ = std::max(rest[0] / std::max(rest[1], 1.0), floor);
}

Moments PrivateMoments::equivalent(double spread, Team& team) const {
  const std::size_t d = raw_.d, dd = d * d;
  const double tau2 = noise_ * noise_ * (1 + squared_norm(centre_) + spread);
  Moments m = raw_;
  team.each(own_agents(raw_.n, team), [&](std::int64_t agent, int) {
    const std::size_t i = raw_.at(static_cast<std::size_t>(agent));
    const Directions of(raw_, i);
    const Equivalent to(of, tau2 / s2_);
    const Matrix A = of.with(to.values);
    std::copy_n(A.all().begin(), dd, m.A.begin() + static_cast<std::ptrdiff_t>(i * dd));
    const Vector b = multiply(transposed(of.eigen.vectors), to.b);
    std::copy_n(b.begin(), d, m.b.begin() + static_cast<std::ptrdiff_t>(i * d));
    m.yy[i] = to.explained + s2_ * std::max(0.0, m.rows[i] - static_cast<double>(d));
  });
  return m;
}

}  // namespace affpcl
