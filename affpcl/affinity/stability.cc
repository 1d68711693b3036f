#include "affpcl/affinity/stability.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

// Symmetric matrices by their upper triangles.
struct Triangle {
  explicit Triangle(std::size_t dim) {
    for (std::size_t r = 0; r < dim; ++r)
      for (std::size_t c = r; c < dim; ++c) entries.push_back({r, c});
  }
  std::vector<std::pair<std::size_t, std::size_t>> entries;
  std::size_t size() const { return entries.size(); }
};

// K += weight times the map P -> A P B' + B P A' of symmetric matrices, over 2 where A is B.
void add_map(double weight, MatrixView A, MatrixView B, const Triangle& of, Matrix& K) {
  for (std::size_t row = 0; row < of.size(); ++row) {
    const auto [r, k] = of.entries[row];
    for (std::size_t col = 0; col < of.size(); ++col) {
      const auto [c, l] = of.entries[col];
      double v = A(r, c) * B(k, l) + B(r, c) * A(k, l);
      if (c != l) v += A(r, l) * B(k, c) + B(r, l) * A(k, c);
      K(row, col) += weight * v;
    }
  }
}

// A(s) of every lane, from its columns.
std::vector<Matrix> matrices(const Problem& problem, Lanes lanes, In s, Scratch& scratch) {
  const int d = problem.shape().d;
  const auto D = static_cast<std::size_t>(d);
  std::vector<Matrix> A(static_cast<std::size_t>(lanes.count), Matrix(D, D));
  std::vector<double> unit(D);
  Buffer space(D * kLanes);
  const Out y{space.data(), d};
  for (std::size_t c = 0; c < D; ++c) {
    unit[c] = 1;
    problem.direction(lanes, s, {}, {unit.data(), d, 1}, scratch, y);
    unit[c] = 0;
    for (std::size_t l = 0; l < A.size(); ++l)
      for (std::size_t r = 0; r < D; ++r) A[l](r, c) = y.row(static_cast<int>(r))[l];
  }
  return A;
}

// The errors' covariance goes by P -> P - alpha (Abar P + P Abar') + alpha^2 E[A P A'], which maps
// positive semidefinite matrices to such. Its spectral radius is therefore an eigenvalue (Krein and
// Rutman 1948), and first 1 where 1 / alpha is one of Lyapunov^-1 E[A . A'], a map of the same kind.
double limit(MatrixView Abar, const Matrix& AA, const Triangle& of) {
  if (error_metric(Abar).rows() == 0) return 0;
  Matrix lyapunov(of.size(), of.size());
  add_map(1, Abar, Matrix::identity(Abar.rows()), of, lyapunov);
  return 1 / spectral_radius(multiply(inverse(lyapunov), AA));
}

// to += A'B A.
void add_congruence(const Matrix& A, const Matrix& B, Matrix& to) {
  const Matrix product = multiply(transposed(A), multiply(B, A));
  for (std::size_t j = 0; j < to.all().size(); ++j) to.all()[j] += product.all()[j];
}

}  // namespace

// With M = p + A and F = (p - A) M^-1, L = F'L F + 2 p M^-T M^-1: a geometric series, summed by
// doubling (Smith 1968).
Matrix error_metric(MatrixView Abar) {
  const std::size_t d = Abar.rows();
  const double p = norm(Abar.all()) / std::sqrt(static_cast<double>(d));
  if (!(p > 0)) return {};
  Matrix plus(d, d), minus(d, d);
  for (std::size_t r = 0; r < d; ++r)
    for (std::size_t c = 0; c < d; ++c)
      plus(r, c) = (r == c ? p : 0) + Abar(r, c), minus(r, c) = (r == c ? p : 0) - Abar(r, c);
  const Matrix inverse_plus = inverse(plus);
  Matrix F = multiply(minus, inverse_plus), L(d, d), next(d, d);
  add_congruence(inverse_plus, Matrix::identity(d), L);
  for (double& x : L.all()) x *= 2 * p;
  for (int step = 0; step < 60; ++step) {
    next = L;
    add_congruence(F, L, next);
    L = next;
    F = multiply(F, F);
    const double left = norm(F.all());
    if (!std::isfinite(left)) return {};
    if (left < 1e-16) return L;
  }
  return {};
}

namespace {

// E[A P A'] of every agent of a finite problem, whose A(s) is the same for all, one row each.
Matrix finite_maps(const Problem& problem, const Finite& finite, const Triangle& of, Out s) {
  constexpr int kOutcomes = 64;  // at a time
  const std::int64_t n = problem.shape().agents;
  const std::size_t size = of.size() * of.size();
  Matrix all(static_cast<std::size_t>(n), size), one(of.size(), of.size());
  Scratch scratch;
  for (int from = 0; from < finite.outcomes(); from += kOutcomes) {
    const int count = std::min(kOutcomes, finite.outcomes() - from);
    Matrix p(static_cast<std::size_t>(n), static_cast<std::size_t>(count)), maps(p.cols(), size);
    for (int o = 0; o < count; ++o) {
      finite.outcome({0, 1}, from + o, s);
      const Matrix A = matrices(problem, {0, 1}, s, scratch).front();
      std::fill(one.all().begin(), one.all().end(), 0.0);
      add_map(0.5, A, A, of, one);
      std::copy(one.all().begin(), one.all().end(), maps.row(static_cast<std::size_t>(o)).begin());
      for (std::int64_t i = 0; i < n; ++i)
        p(static_cast<std::size_t>(i), static_cast<std::size_t>(o)) =
            finite.probability(i, from + o);
    }
    add_product(1, p, maps, all);
  }
  return all;
}

// The same of drawn samples.
Matrix drawn_maps(const Problem& problem, std::uint64_t seed, int draws, const Store& worlds,
                  const Triangle& of, Out s) {
  const std::int64_t n = problem.shape().agents;
  Matrix all(static_cast<std::size_t>(n), of.size() * of.size());
  Scratch scratch;
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    std::vector<Matrix> AA(static_cast<std::size_t>(lanes.count), Matrix(of.size(), of.size()));
    for (int t = 0; t < draws; ++t) {
      problem.draw({{seed, 0xfffffffeu, static_cast<std::uint32_t>(t)}, {}}, worlds.block(b), s);
      const std::vector<Matrix> A = matrices(problem, lanes, s, scratch);
      for (std::size_t l = 0; l < A.size(); ++l) add_map(0.5 / draws, A[l], A[l], of, AA[l]);
    }
    for (std::size_t l = 0; l < AA.size(); ++l)
      std::copy(AA[l].all().begin(), AA[l].all().end(),
                all.row(static_cast<std::size_t>(lanes.first) + l).begin());
  }
  return all;
}

}  // namespace

std::vector<double> stable_steps(const Problem& problem, std::uint64_t seed, int draws) {
  const Shape shape = problem.shape();
  const auto d = static_cast<std::size_t>(shape.d);
  Layout world, sample;
  problem.declare(world, sample);
  const Store worlds(world.rows(), shape.agents);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes);
  const Out s{state.data(), sample.rows()};
  const Triangle of(d);
  const Finite* finite = problem.finite();
  const Matrix maps = finite != nullptr ? finite_maps(problem, *finite, of, s)
                                        : drawn_maps(problem, seed, draws, worlds, of, s);
  std::vector<double> limits;
  for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
    const Lanes lanes = lanes_of(b, shape.agents);
    const std::vector<double> Abar = mean_matrices(problem, lanes);
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l) {
      Matrix AA(of.size(), of.size());
      const auto row = maps.row(static_cast<std::size_t>(lanes.first) + l);
      std::copy(row.begin(), row.end(), AA.all().begin());
      limits.push_back(limit({Abar.data() + l * d * d, d, d}, AA, of));
    }
  }
  return limits;
}

}  // namespace affpcl
