#include "affpcl/problem/link_moments.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

// Rows of X made orthonormal, those that depend on the ones before left out.
Matrix row_basis(MatrixView X) {
  std::vector<Vector> basis;
  double longest = 0;
  for (std::size_t o = 0; o < X.rows(); ++o) longest = std::max(longest, norm(X.row(o)));
  for (std::size_t o = 0; o < X.rows(); ++o) {
    Vector row(X.row(o).begin(), X.row(o).end());
    for (int twice = 0; twice < 2; ++twice)  // once leaves rounding errors of near-parallel rows
      for (const Vector& q : basis) {
        const double along = dot(q, row);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] -= along * q[j];
      }
    const double length = norm(row);
    if (length <= 1e-10 * longest) continue;
    for (double& r : row) r /= length;
    basis.push_back(std::move(row));
  }
  Matrix Q(basis.size(), X.cols());
  for (std::size_t e = 0; e < basis.size(); ++e)
    std::copy(basis[e].begin(), basis[e].end(), Q.row(e).begin());
  return Q;
}

// d mu_o / d u_j at mu.
double slope(Link link, std::span<const double> mu, std::size_t o, std::size_t j) {
  if (link == Link::kPoisson) return o == j ? mu[o] : 0;
  return mu[o] * ((o == j ? 1 : 0) - mu[j]);
}

// Sums of f, f t and f t t' over the nodes, for each of several f.
struct Sums {
  Sums(std::size_t functions, std::size_t r, bool squares)
      : zeroth(functions), first(functions, r), second(squares ? functions : 0, r * r) {}
  void add(std::size_t f, double value, std::span<const double> t) {
    zeroth[f] += value;
    for (std::size_t a = 0; a < t.size(); ++a) first(f, a) += value * t[a];
    if (second.rows() == 0) return;
    for (std::size_t a = 0; a < t.size(); ++a)
      for (std::size_t b = 0; b < t.size(); ++b) second(f, a * t.size() + b) += value * t[a] * t[b];
  }
  Vector zeroth;
  Matrix first, second;
};

// Calls f(weight, t) at all nodes of the r-dimensional rule.
template <class F>
void each_node(Link link, std::size_t r, F f) {
  // Errors fall as exp(-2 pi^2 / step) at unit predictors: below 1e-14 for one and two numbers.
  const double reach = link == Link::kPoisson ? 12 : 8.4, step = r > 2 ? 0.5 : r > 1 ? 0.4 : 0.25;
  const auto nodes = static_cast<int>(2 * reach / step) + 1;
  const double norm = std::pow(step / std::sqrt(2 * std::numbers::pi), static_cast<double>(r));
  std::vector<int> at(r);
  Vector t(r);
  while (true) {
    double square = 0;
    for (std::size_t a = 0; a < r; ++a) t[a] = -reach + step * at[a], square += t[a] * t[a];
    f(norm * std::exp(-square / 2), std::span<const double>(t));
    std::size_t a = 0;
    while (a < r && ++at[a] == nodes) at[a++] = 0;
    if (a == r) return;
  }
}

}  // namespace

void mean_labels(Link link, std::span<double> u) {
  if (link == Link::kPoisson) return exponentials(u);
  double largest = 0, total = 0;  // class 0 has u = 0
  for (double v : u) largest = std::max(largest, v);
  for (double& v : u) total += v = std::exp(v - largest);
  total += std::exp(-largest);
  for (double& v : u) v /= total;
}

LinkMoments link_moments(Link link, std::span<const double> m, MatrixView X, bool curvature) {
  const std::size_t q = X.rows(), D = X.cols();
  const Matrix Q = row_basis(X), XQ = multiply(X, transposed(Q));
  const std::size_t r = Q.rows();
  const Vector at_mean = multiply(X, m);
  Sums values(q, r, false), slopes(curvature ? q * q : 0, r, curvature);
  Vector mu(q);
  each_node(link, r, [&](double weight, std::span<const double> t) {
    for (std::size_t o = 0; o < q; ++o) mu[o] = at_mean[o] + dot(XQ.row(o), t);
    mean_labels(link, mu);
    for (std::size_t o = 0; o < q; ++o) values.add(o, weight * mu[o], t);
    for (std::size_t f = 0; f < slopes.zeroth.size(); ++f)
      slopes.add(f, weight * slope(link, mu, f / q, f % q), t);
  });

  LinkMoments out{values.zeroth, multiply(values.first, Q), {}};
  for (std::size_t o = 0; o < q; ++o)
    for (std::size_t j = 0; j < D; ++j) out.with_phi(o, j) += values.zeroth[o] * m[j];
  if (!curvature) return out;
  out.curvature = Matrix(q * D, q * D);
  const Matrix QQ = multiply(transposed(Q), Q), Qt = multiply(slopes.first, Q);
  for (std::size_t f = 0; f < q * q; ++f) {
    const double all = slopes.zeroth[f];
    const Matrix inner = multiply(
        transposed(Q), multiply(MatrixView(slopes.second.row(f).data(), r, r), MatrixView(Q)));
    for (std::size_t a = 0; a < D; ++a)
      for (std::size_t b = 0; b < D; ++b)
        out.curvature(f / q * D + a, f % q * D + b) =
            ((a == b ? 1 : 0) - QQ(a, b) + m[a] * m[b]) * all + m[a] * Qt(f, b) + Qt(f, a) * m[b] +
            inner(a, b);
  }
  return out;
}

Matrix solve_link(Link link, std::int64_t first, std::int64_t last,
                  const std::function<std::span<const double>(std::int64_t)>& m_of,
                  const Matrix& target) {
  constexpr int kMostSteps = 200;
  const std::size_t size = target.all().size();
  const double share = 1 / static_cast<double>(last - first);
  Matrix X(target.rows(), target.cols());
  for (int step = 0; step < kMostSteps; ++step) {
    Vector gap = target.all();
    Matrix H(size, size);
    for (std::int64_t i = first; i < last; ++i) {
      const LinkMoments e = link_moments(link, m_of(i), X, true);
      for (std::size_t j = 0; j < size; ++j) gap[j] -= share * e.with_phi.all()[j];
      for (std::size_t j = 0; j < size * size; ++j) H.all()[j] += share * e.curvature.all()[j];
    }
    const Vector move = solve_symmetric(H, gap);
    // Damped far from the solution; an exponential mean overflows after a long step.
    const double length = norm(move),
                 most = (1 + norm(X.all())) * (link == Link::kPoisson ? 0.3 : 1);
    for (std::size_t j = 0; j < size; ++j)
      X.all()[j] += move[j] * (length > most ? most / length : 1);
    if (length <= 1e-13 * (1 + norm(X.all()))) return X;
  }
  throw BadInput("Newton's method finds no solution of this problem's regressions");
}

}  // namespace affpcl
