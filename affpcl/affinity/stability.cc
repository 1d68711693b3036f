#include "affpcl/affinity/stability.h"

#include <algorithm>
#include <cmath>

#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

// K += weight A (x) B, all d x d.
void add_kronecker(double weight, MatrixView A, MatrixView B, Matrix& K) {
  const std::size_t d = A.rows();
  for (std::size_t r = 0; r < d; ++r)
    for (std::size_t k = 0; k < d; ++k)
      for (std::size_t c = 0; c < d; ++c)
        for (std::size_t l = 0; l < d; ++l) K(r * d + k, c * d + l) += weight * (A(r, c) * B(k, l));
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

// The largest alpha below which I - alpha (Abar (x) I + I (x) Abar) + alpha^2 E[A (x) A] has its
// spectrum in the unit circle.
double limit(MatrixView Abar, const Matrix& AA) {
  const Matrix I = Matrix::identity(Abar.rows()), one = Matrix::identity(AA.rows());
  Matrix first(AA.rows(), AA.cols()), M = first;
  add_kronecker(1, Abar, I, first);
  add_kronecker(1, I, Abar, first);
  const auto stable = [&](double alpha) {
    for (std::size_t j = 0; j < M.all().size(); ++j)
      M.all()[j] = one.all()[j] - alpha * first.all()[j] + alpha * alpha * AA.all()[j];
    return spectral_radius(M) < 1;
  };
  double lo = 0, hi = 1 / std::max(norm(Abar.all()), 1e-300);
  while (stable(hi)) lo = hi, hi *= 2;
  for (int step = 0; step < 30; ++step) {
    const double middle = (lo + hi) / 2;
    (stable(middle) ? lo : hi) = middle;
  }
  return lo;
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

std::vector<double> stable_steps(const Problem& problem, std::uint64_t seed, int draws) {
  const Shape shape = problem.shape();
  const auto d = static_cast<std::size_t>(shape.d);
  Layout world, sample;
  problem.declare(world, sample);
  const Store worlds(world.rows(), shape.agents);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes);
  const Out s{state.data(), sample.rows()};
  const Finite* finite = problem.finite();
  Scratch scratch;
  std::vector<double> limits;
  for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
    const Lanes lanes = lanes_of(b, shape.agents);
    std::vector<Matrix> AA(static_cast<std::size_t>(lanes.count), Matrix(d * d, d * d));
    for (int t = 0; t < (finite != nullptr ? finite->outcomes() : draws); ++t) {
      if (finite != nullptr) {
        finite->outcome(lanes, t, s);
      } else {
        problem.draw({{seed, 0xfffffffeu, static_cast<std::uint32_t>(t)}, {}}, worlds.block(b), s);
      }
      const std::vector<Matrix> A = matrices(problem, lanes, s, scratch);
      for (std::size_t l = 0; l < A.size(); ++l) {
        const double weight =
            finite != nullptr ? finite->probability(lanes.first + static_cast<std::int64_t>(l), t)
                              : 1.0 / draws;
        if (weight > 0) add_kronecker(weight, A[l], A[l], AA[l]);
      }
    }
    const std::vector<double> Abar = mean_matrices(problem, lanes);
    for (std::size_t l = 0; l < AA.size(); ++l)
      limits.push_back(limit({Abar.data() + l * d * d, d, d}, AA[l]));
  }
  return limits;
}

}  // namespace affpcl
