// The Gaussian variational bound of an agent's evidence: its random effects have a normal
// distribution, whose mean and covariance make E log p(y, v) - E log q(v) as large as they can.
#include "affpcl/mixed/glmm_evidence-inl.h"

namespace affpcl {
namespace {

constexpr int kSteps = 300;           // at most
constexpr double kLeastShare = 1e-4;  // of a step

}  // namespace

double GlmmEvidence::Impl::spread_bound(Space& s) const {
  if (!diagonal) {
    s.K = Matrix::identity(q);  // its factor is in s.C
    s.C.forward(s.K);
    multiply(point->root, s.K, s.B);
    return squared_norm(s.K.all());
  }
  double trace = 0;
  std::fill(s.B.all().begin(), s.B.all().end(), 0.0);
  double* ends = s.ends.data();
  for (std::size_t a = 0; a < m; ++a) {
    const std::size_t width = q - zeros(a);
    const MatrixSpan R(ends, c, width);
    std::fill(R.all().begin(), R.all().end(), 0.0);
    for (std::size_t j = 0; j < c; ++j) R(j, j) = 1;
    s.C.forward_ends(R);
    trace += squared_norm(R.all());
    for (std::size_t j = 0; j < c; ++j) {
      for (double& entry : R.row(j)) entry *= point->root(a * c + j, a * c + j);
      std::copy_n(R.row(j).begin(), width, s.B.row(a * c + j).data() + zeros(a));
    }
    ends += c * width;
  }
  return trace;
}

double GlmmEvidence::Impl::bound_at(std::size_t held, Space& s) const {
  const double trace = q > 0 ? spread_bound(s) : 0;
  double value = 0;
  std::fill(s.g.begin(), s.g.end(), 0.0);
  std::fill(s.target.begin(), s.target.end(), 0.0);
  each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
    if (q > 0) {
      leverages(x, s);
    } else {
      std::fill(s.weights.begin(), s.weights.end(), 0.0);
    }
    value += likelihood.expect(block, s.eta.data(), s.weights.data(), s.slopes.data(),
                               s.expected.data());
    add_slopes(x, s.slopes.data(), s, s.g);
    add_curvature(x, m, s.expected.data(), {s.scaled.data(), d, block.count}, s.target.data());
  });
  if (q == 0) return value;
  return value - (squared_norm(s.v) + s.C.log_determinant() + trace - static_cast<double>(q)) / 2;
}

// Both the mean and the curvature go a share of the way to where they would be if the expectations
// did not move with them: a natural gradient step, shorter where the bound does not grow.
double GlmmEvidence::Impl::find_bound(std::size_t held, Space& s, bool& found) {
  const std::size_t size = s.target.size();
  double* const A = blocks.data() + held * size;
  std::copy_n(v.data() + held * q, q, s.v.begin());
  for (std::size_t j = 0; j < q; ++j) s.v[j] *= rescaled[j];
  coefficients_at(s.v, s);
  if (known[held] == 0) curve(held, s);
  factor(held, s);
  double value = bound_at(held, s);
  found = false;
  double largest = 0;
  for (int k = 0; k < kSteps && !found; ++k) {
    std::copy_n(A, size, s.start.begin());
    s.towards = s.target;
    for (std::size_t j = 0; j < q; ++j) s.u[j] = s.g[coefficient[j]];
    if (q > 0) multiply(transposed(point->root), s.u, s.r);
    for (std::size_t j = 0; j < q; ++j) s.r[j] -= s.v[j];
    s.trial = s.v;
    const double old = value, slack = 1e-12 * (1 + std::abs(old));
    double share = 1;
    for (;; share /= 2) {
      if (share < kLeastShare) share = 0;  // back to where it was
      for (std::size_t j = 0; j < size; ++j)
        A[j] = s.start[j] + share * (s.towards[j] - s.start[j]);
      factor(held, s);
      s.step = s.r;
      if (q > 0) s.C.solve(s.step);
      for (std::size_t j = 0; j < q; ++j) s.v[j] = s.trial[j] + share * s.step[j];
      coefficients_at(s.v, s);
      value = bound_at(held, s);
      if (share == 0 || value >= old - slack) break;
    }
    largest = std::max(largest, value - old);
    found = share > 0 && value - old < std::max(bound_gain, bound_share * largest);
    if (share == 0) break;
  }

  std::copy(s.v.begin(), s.v.end(), v.begin() + static_cast<std::ptrdiff_t>(held * q));
  return value;
}

}  // namespace affpcl
