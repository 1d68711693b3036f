#include "affpcl/mixed/penalised.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr std::size_t kRows = 256;
constexpr std::array kStrengths = {100.0, 10.0, 1.0, 0.1};  // from strong to weak: warm starts
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

// curve(x) gives what add_curve sums, loss(model) the leave-one-out loss.
template <class Curve, class Loss>
Penalised tuned(const Likelihood& likelihood, std::size_t d, Curve curve, Loss loss) {
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
    if (const double l = loss(at); l < least) least = l, best = at;
  }
  return best;
}

}  // namespace

std::vector<double> leave_one_out_losses(const GlmmRows& rows, const Likelihood& likelihood,
                                         std::span<const double> psi, std::size_t held,
                                         std::span<const double> x, MatrixView smoother) {
  const std::size_t m = likelihood.predictors(), d = rows.d, p = m * d;
  std::vector<double> losses, g(m * kRows), w(likelihood.pairs() * kRows);
  Vector mean(likelihood.outputs()), eta_r(m), move(m);
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
      } else {
        Matrix I = Matrix::identity(m), Hr(m, m);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b) Hr(a, b) = H(a * m + b, r);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b)
            for (std::size_t c = 0; c < m; ++c)
              I(a, b) -= w[(a >= c ? a * (a + 1) / 2 + c : c * (c + 1) / 2 + a) * count + r] * Hr(c, b);
        for (std::size_t a = 0; a < m; ++a) move[a] = g[a * count + r];
        const Vector shifted = multiply(Hr, solve(I, move));
        for (std::size_t a = 0; a < m; ++a) eta_r[a] = eta[a * count + r] - shifted[a];
      }
      likelihood.mean(psi, eta_r.data(), mean.data());
      losses.push_back((block.weight == nullptr ? 1 : block.weight[r]) *
                       likelihood.loss(psi, block.y[r],
                                       block.trials == nullptr ? 1 : block.trials[r], mean.data()));
    }
  });
  return losses;
}

Penalised fit_penalised(const GlmmRows& rows, const Likelihood& likelihood,
                        std::span<const double> psi, std::size_t held) {
  const std::size_t p = likelihood.predictors() * rows.d;
  const auto curve = [&](const Vector& x) {
    std::vector<double> sums(1 + p + likelihood.pairs() * rows.d * rows.d);
    add_curve(rows, likelihood, psi, held, x, sums.data());
    return sums;
  };
  return tuned(likelihood, rows.d, curve, [&](const Penalised& at) {
    const std::vector<double> losses =
        leave_one_out_losses(rows, likelihood, psi, held, at.x, at.inverse);
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  });
}

Penalised fit_pooled(const GlmmRows& rows, const Likelihood& likelihood,
                     std::span<const double> psi, Team& team) {
  const std::size_t p = likelihood.predictors() * rows.d;
  const std::size_t width = 1 + p + likelihood.pairs() * rows.d * rows.d;
  AgentSum sums("pooled model", width, rows.agents, team),
      total("pooled model", 1, rows.agents, team);
  const auto curve = [&](const Vector& x) {
    const double* const all = sums([&](std::size_t i, double* out) {
      add_curve(rows, likelihood, psi, rows.at(i), x, out);
    });
    return std::vector<double>(all, all + width);
  };
  return tuned(likelihood, rows.d, curve, [&](const Penalised& at) {
    return *total([&](std::size_t i, double* out) {
      for (double l : leave_one_out_losses(rows, likelihood, psi, rows.at(i), at.x, at.inverse))
        *out += l;
    });
  });
}

}  // namespace affpcl
