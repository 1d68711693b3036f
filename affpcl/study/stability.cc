#include "affpcl/study/stability.h"

#include <Eigen/Dense>
#include <cmath>

namespace affpcl {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix kronecker(const Matrix& A, const Matrix& B) {
  Matrix K(A.rows() * B.rows(), A.cols() * B.cols());
  for (Eigen::Index r = 0; r < A.rows(); ++r)
    for (Eigen::Index c = 0; c < A.cols(); ++c)
      K.block(r * B.rows(), c * B.cols(), B.rows(), B.cols()) = A(r, c) * B;
  return K;
}

// A(s) of every lane, from its columns.
std::vector<Matrix> matrices(const Problem& problem, Lanes lanes, In s) {
  const int d = problem.shape().d;
  std::vector<Matrix> A(static_cast<std::size_t>(lanes.count), Matrix(d, d));
  std::vector<double> unit(static_cast<std::size_t>(d));
  Buffer space(static_cast<std::size_t>(d) * kLanes);
  const Out y{space.data(), d};
  for (int c = 0; c < d; ++c) {
    unit[static_cast<std::size_t>(c)] = 1;
    problem.apply(lanes, s, {unit.data(), d, 1}, y);
    unit[static_cast<std::size_t>(c)] = 0;
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < d; ++r) A[static_cast<std::size_t>(l)](r, c) = y.row(r)[l];
  }
  return A;
}

// The largest alpha below which I - alpha (Abar (x) I + I (x) Abar) + alpha^2 E[A (x) A] has its
// spectrum in the unit circle.
double limit(const Matrix& Abar, const Matrix& AA) {
  const Eigen::Index d = Abar.rows();
  const Matrix I = Matrix::Identity(d, d), first = kronecker(Abar, I) + kronecker(I, Abar),
               one = Matrix::Identity(d * d, d * d);
  const auto stable = [&](double alpha) {
    const Matrix M = one - alpha * first + alpha * alpha * AA;
    return M.eigenvalues().cwiseAbs().maxCoeff() < 1;
  };
  double lo = 0, hi = 1 / std::max(Abar.norm(), 1e-300);
  while (stable(hi)) lo = hi, hi *= 2;
  for (int step = 0; step < 30; ++step) {
    const double middle = (lo + hi) / 2;
    (stable(middle) ? lo : hi) = middle;
  }
  return lo;
}

}  // namespace

std::vector<double> stable_steps(const Problem& problem, std::uint64_t seed, int draws) {
  const Shape shape = problem.shape();
  const Eigen::Index d = shape.d;
  Layout world, sample;
  problem.declare(world, sample);
  const Store worlds(world.rows(), shape.agents);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes);
  const Out s{state.data(), sample.rows()};
  const bool finite = problem.outcomes() > 0;
  std::vector<double> limits;
  for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
    const Lanes lanes = lanes_of(b, shape.agents);
    std::vector<Matrix> AA(static_cast<std::size_t>(lanes.count), Matrix::Zero(d * d, d * d));
    for (int t = 0; t < (finite ? problem.outcomes() : draws); ++t) {
      if (finite) {
        problem.outcome(lanes, t, s);
      } else {
        problem.draw({{seed, 0xfffffffeu, static_cast<std::uint32_t>(t)}, {}}, worlds.block(b), s);
      }
      const std::vector<Matrix> A = matrices(problem, lanes, s);
      for (int l = 0; l < lanes.count; ++l) {
        const double weight = finite ? problem.probability(lanes.first + l, t) : 1.0 / draws;
        if (weight > 0)
          AA[static_cast<std::size_t>(l)] +=
              weight * kronecker(A[static_cast<std::size_t>(l)], A[static_cast<std::size_t>(l)]);
      }
    }
    const std::vector<double> Abar = mean_matrices(problem, lanes);
    for (int l = 0; l < lanes.count; ++l)
      limits.push_back(limit(
          Eigen::Map<const Matrix>(Abar.data() + static_cast<std::ptrdiff_t>(l) * d * d, d, d),
          AA[static_cast<std::size_t>(l)]));
  }
  return limits;
}

}  // namespace affpcl
