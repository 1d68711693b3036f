#include "affpcl/mixed/penalised.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr std::size_t kRows = 256;
constexpr std::array kStrengths = {100.0, 10.0, 1.0, 0.1};  // from strong to weak: warm starts
// Shares of the covariance that predictions average over. Where columns separate the classes the
// curvature says far too much uncertainty, and 0 is best.
constexpr std::array kSpreads = {0.0, 0.1, 0.3, 1.0};
constexpr double kBetter = 1e-6;     // share of the loss that a smaller one has to save
constexpr double kIntercept = 0.04;  // an intercept is hardly beyond 5 standard deviations of 5
constexpr int kSteps = 30;
constexpr double kPromise = 1e-6;  // gain of log-likelihood that ends the steps

// f(rows, x [d][count], linear predictors)
template <class F>
void each_block(const GlmmRows& rows, std::size_t held, std::size_t m, std::span<const double> x,
                F f) {
  std::vector<double> memory(rows.d * kRows), eta(m * kRows);
  for (const GlmmRows::Run& run : rows.runs[held])
    for (std::size_t from = run.from; from < run.to; from += kRows) {
      const std::size_t count = std::min(kRows, run.to - from);
      for (std::size_t j = 0; j < rows.d; ++j)
        std::copy_n(rows.X + j * rows.stride + from, count, memory.data() + j * count);
      const MatrixView block(memory.data(), rows.d, count);
      for (std::size_t a = 0; a < m; ++a) {
        multiply(transposed(block), x.subspan(a * rows.d, rows.d), {eta.data() + a * count, count});
        for (std::size_t r = 0; r < count && rows.offset != nullptr; ++r)
          eta[a * count + r] += rows.offset[a * rows.stride + from + r];
      }
      f(rows.block(from, count), block, eta.data());
    }
}

// out: log-likelihood, its slope [p], minus its second derivative in blocks [pairs][d][d].
void add_curve(const GlmmRows& rows, const Likelihood& likelihood, std::span<const double> psi,
               std::size_t held, std::span<const double> x, double* out) {
  const std::size_t m = likelihood.predictors(), d = rows.d;
  std::vector<double> g(m * kRows), w(likelihood.pairs() * kRows), scaled(d * kRows);
  Vector part(d);
  each_block(rows, held, m, x, [&](const RowBlock& block, MatrixView X, const double* eta) {
    const std::size_t count = block.count;
    out[0] += likelihood.curve(block, psi, eta, g.data(), w.data());
    for (std::size_t a = 0; a < m; ++a) {
      multiply(X, {g.data() + a * count, count}, part);
      for (std::size_t j = 0; j < d; ++j) out[1 + a * d + j] += part[j];
    }
    add_curvature(X, m, w.data(), {scaled.data(), d, count}, out + 1 + m * d);
  });
}

// The losses of an agent's rows, by share of the covariance, as if each row had been held out: with
// its leverage H its linear predictors become eta - H (I - w H)^-1 g, and their covariance is a
// share of (I - H w)^-1 H.
std::vector<double> leave_one_out(const GlmmRows& rows, const Likelihood& likelihood,
                                  std::span<const double> psi, std::size_t held,
                                  std::span<const double> x, MatrixView smoother,
                                  std::span<const double> spreads) {
  const std::size_t m = likelihood.predictors(), d = rows.d, p = m * d;
  std::vector<double> losses(spreads.size()), g(m * kRows), w(likelihood.pairs() * kRows);
  const Matrix& basis = likelihood.basis();
  Vector eta_r(m), move(m), channels(basis.rows()), own(basis.rows()), variances(basis.rows());
  each_block(rows, held, m, x, [&](const RowBlock& block, MatrixView X, const double* eta) {
    const std::size_t count = block.count;
    likelihood.curve(block, psi, eta, g.data(), w.data());
    // H_ab of every row: x'S_ab x.
    Matrix H(m * m, count);
    for (std::size_t a = 0; a < m; ++a)
      for (std::size_t b = 0; b < m; ++b) {
        Matrix S(d, d);
        for (std::size_t j = 0; j < d; ++j)
          std::copy_n(smoother.data() + (a * d + j) * p + b * d, d, S.row(j).begin());
        column_dots(multiply(S, X), X, H.row(a * m + b));
      }
    for (std::size_t r = 0; r < count; ++r) {
      if (m == 1) {
        const double share = std::min(w[r] * H(0, r), 1 - 1e-3);
        eta_r[0] = eta[r] - H(0, r) * g[r] / (1 - share);
        own[0] = H(0, r) / (1 - share);
      } else {
        Matrix I = Matrix::identity(m), Hr(m, m);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b) Hr(a, b) = H(a * m + b, r);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b)
            for (std::size_t c = 0; c < m; ++c)
              I(a, b) -=
                  w[(a >= c ? a * (a + 1) / 2 + c : c * (c + 1) / 2 + a) * count + r] * Hr(c, b);
        for (std::size_t a = 0; a < m; ++a) move[a] = g[a * count + r];
        const Vector shifted = multiply(Hr, solve(I, move));
        for (std::size_t a = 0; a < m; ++a) eta_r[a] = eta[a * count + r] - shifted[a];
        for (std::size_t c = 0; c < own.size() && spreads.size() > 1; ++c) {
          const Vector of(basis.row(c).begin(), basis.row(c).end());
          own[c] = std::max(0.0, dot(of, multiply(Hr, solve(I, of))));
        }
      }
      for (std::size_t c = 0; c < channels.size(); ++c) channels[c] = dot(basis.row(c), eta_r);
      for (std::size_t k = 0; k < spreads.size(); ++k) {
        for (std::size_t c = 0; c < own.size(); ++c) variances[c] = spreads[k] * own[c];
        const Vector mean = expected_mean(likelihood, psi, channels, variances);
        losses[k] += (block.weight == nullptr ? 1 : block.weight[r]) *
                     likelihood.loss(psi, block.y[r], block.trials == nullptr ? 1 : block.trials[r],
                                     mean.data());
      }
    }
  });
  return losses;
}

// curve(x) gives what add_curve sums, losses(model, spreads) the leave-one-out losses.
template <class Curve, class Losses>
Penalised tuned(const Likelihood& likelihood, std::size_t d, Curve curve, Losses losses) {
  const std::size_t m = likelihood.predictors(), p = m * d;
  Penalised best, at;
  at.x.assign(p, 0.0);
  double least = std::numeric_limits<double>::infinity();
  for (double strength : kStrengths) {
    const auto penalty = [&](std::size_t j) { return j % d == 0 ? kIntercept : strength; };
    const auto objective = [&](double value, const Vector& x) {
      for (std::size_t j = 0; j < p; ++j) value -= penalty(j) * x[j] * x[j] / 2;
      return value;
    };
    std::vector<double> sums = curve(at.x);
    Matrix A(p, p);
    for (int k = 0; k < kSteps; ++k) {
      const double value = objective(sums[0], at.x);
      assemble(sums.data() + 1 + p, m, d, A);
      Vector g(sums.begin() + 1, sums.begin() + 1 + static_cast<std::ptrdiff_t>(p));
      for (std::size_t j = 0; j < p; ++j) A(j, j) += penalty(j), g[j] -= penalty(j) * at.x[j];
      const Cholesky C(A);
      Vector step = g;
      C.solve(step);
      if (dot(step, g) / 2 < kPromise) break;
      const Vector from = at.x;
      for (double share = 1; share > 1e-4; share /= 2) {
        for (std::size_t j = 0; j < p; ++j) at.x[j] = from[j] + share * step[j];
        sums = curve(at.x);
        if (objective(sums[0], at.x) >= value) break;
      }
    }
    at.strength = strength;
    at.inverse = Ldlt(A).inverse();
    const double plain = losses(at, std::span(kSpreads).first(1))[0];
    if (plain < least) least = plain, best = at;
  }
  if (best.inverse.rows() == 0) best = at;  // no loss is finite
  const std::vector<double> of = losses(best, kSpreads);
  std::size_t spread = kSpreads.size() - 1;  // also where the mean is the linear predictor
  for (std::size_t k = spread; k-- > 0;)
    if (of[k] < of[spread] - kBetter * std::abs(of[spread])) spread = k;
  for (std::size_t a = 0; a < p; ++a)
    for (double& v : best.inverse.row(a)) v *= kSpreads[spread];
  return best;
}

}  // namespace

Penalised fit_penalised(const GlmmRows& rows, const Likelihood& likelihood,
                        std::span<const double> psi, std::size_t held) {
  const std::size_t p = likelihood.predictors() * rows.d;
  const auto curve = [&](const Vector& x) {
    std::vector<double> sums(1 + p + likelihood.pairs() * rows.d * rows.d);
    add_curve(rows, likelihood, psi, held, x, sums.data());
    return sums;
  };
  return tuned(likelihood, rows.d, curve,
               [&](const Penalised& at, std::span<const double> spreads) {
                 return leave_one_out(rows, likelihood, psi, held, at.x, at.inverse, spreads);
               });
}

Penalised fit_pooled(const GlmmRows& rows, const Likelihood& likelihood,
                     std::span<const double> psi, Team& team) {
  const std::size_t p = likelihood.predictors() * rows.d;
  const std::size_t width = 1 + p + likelihood.pairs() * rows.d * rows.d;
  AgentSum sums("pooled model", width, rows.agents, team);
  const auto curve = [&](const Vector& x) {
    const double* const all = sums(
        [&](std::size_t i, double* out) { add_curve(rows, likelihood, psi, rows.at(i), x, out); });
    return std::vector<double>(all, all + width);
  };
  return tuned(likelihood, rows.d, curve,
               [&](const Penalised& at, std::span<const double> spreads) {
                 AgentSum total("pooled model", spreads.size(), rows.agents, team);
                 const double* const losses = total([&](std::size_t i, double* out) {
                   const std::vector<double> own =
                       leave_one_out(rows, likelihood, psi, rows.at(i), at.x, at.inverse, spreads);
                   for (std::size_t k = 0; k < own.size(); ++k) out[k] += own[k];
                 });
                 return std::vector<double>(losses, losses + spreads.size());
               });
}

}  // namespace affpcl
