// What the integrals of glmm_evidence.h share: a worker's memory, an agent's rows in blocks, its mode
// and what it adds to the sums. glmm_quadrature.cc and glmm_bound.cc have the other two integrals.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "affpcl/mixed/glmm_evidence.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {

struct GlmmEvidence::Impl {
  static constexpr std::size_t kRows = 256;  // at a time: they stay in cache

  Impl(const GlmmRows& all_rows, const Likelihood& of, Options options, Team& the_team)
      : rows(all_rows),
        likelihood(of),
        random(std::move(options.random)),
        team(the_team),
        m(of.predictors()),
        d(all_rows.d),
        p(m * d),
        c(random.size()),
        q(m * c),
        e(of.extras()),
        hermite(q == 1 && options.quadrature > 1 ? options.quadrature : 1),
        bound(options.bound),
        bound_gain(options.bound_gain),
        bound_share(options.bound_share),
        v(rows.held() * q),
        blocks(rows.held() * of.pairs() * d * d),
        constants(rows.held(), std::numeric_limits<double>::quiet_NaN()),
        known(rows.held()) {
    for (int w = 0; w < team.workers(); ++w) spaces.push_back(std::make_unique<Space>(*this));
    for (std::size_t a = 0; a < m; ++a)
      for (std::size_t j : random) coefficient.push_back(a * d + j);
    all_random = c == d;
  }

  // A worker's memory.
  struct Space {
    explicit Space(const Impl& i)
        : x(i.d * kRows),
          scaled(i.d * kRows),
          random_x(i.c * kRows),
          eta(i.m * kRows),
          slopes(i.m * kRows),
          weights(i.likelihood.pairs() * kRows),
          expected(i.bound ? i.likelihood.pairs() * kRows : 0),
          target(i.bound ? i.likelihood.pairs() * i.d * i.d : 0),
          start(target),
          towards(target),
          ends(i.bound ? i.q * i.q : 0),
          spread(i.m * i.q * kRows),
          beta(i.p),
          g(i.p),
          s(i.p),
          t(i.p),
          part(i.d),
          v(i.q),
          trial(i.q),
          r(i.q),
          step(i.q),
          u(i.q),
          Bs(i.q),
          Ps(i.q),
          psi(i.e),
          A(i.p, i.p),
          W(i.p, i.p),
          K(i.q, i.q),
          AL(i.q, i.q),
          B(i.q, i.q),
          A_random(i.p, i.q),
          AB(i.p, i.q) {}
    std::vector<double> x, scaled, random_x, eta, slopes, weights, expected, target, start, towards,
        ends,  // of B's rows, predictor after predictor, if L is diagonal
        spread;
    Vector beta, g, s, t, part, v, trial, r, step, u, Bs, Ps, psi;
    Matrix A, W, K, AL, B, A_random, AB;
    Cholesky C;
    double D_slope = 0;  // of quadrature
  };

  static void add(std::span<const double> x, double* to) {
    for (std::size_t j = 0; j < x.size(); ++j) to[j] += x[j];
  }
  // f(block of rows, x [d][count], eta of beta)
  template <class F>
  void each_block(std::size_t held, Space& s, std::span<const double> beta, F f) const {
    for (const GlmmRows::Run& run : rows.runs[held])
      for (std::size_t from = run.from; from < run.to; from += kRows) {
        const std::size_t count = std::min(kRows, run.to - from);
        for (std::size_t j = 0; j < d; ++j)
          std::copy_n(rows.X + j * rows.stride + from, count, s.x.data() + j * count);
        const MatrixView x(s.x.data(), d, count);
        for (std::size_t a = 0; a < m; ++a) {
          const std::span eta(s.eta.data() + a * count, count);
          multiply(transposed(x), beta.subspan(a * d, d), eta);
          if (rows.offset != nullptr)
            add({rows.offset + a * rows.stride + from, count}, eta.data());
        }
        f(rows.block(from, count), x);
      }
  }
  // The random columns of a block, close together.
  MatrixView random_columns(MatrixView x, Space& s) const {
    if (all_random) return x;
    for (std::size_t j = 0; j < c; ++j)
      std::copy_n(x.row(random[j]).data(), x.cols(), s.random_x.data() + j * x.cols());
    return {s.random_x.data(), c, x.cols()};
  }

  void coefficients_at(std::span<const double> mode, Space& s) const {
    s.beta = point->centre;
    if (q == 0) return;
    multiply(point->root, mode, s.u);
    for (std::size_t j = 0; j < q; ++j) s.beta[coefficient[j]] += s.u[j];
  }

  // The agent's log-likelihood at s.beta without its constant, and g.
  double slope(std::size_t held, Space& s) const {
    double value = 0;
    std::fill(s.g.begin(), s.g.end(), 0.0);
    each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
      value += likelihood.slope(block, point->psi, s.eta.data(), s.slopes.data());
      add_slopes(x, s.slopes.data(), s, s.g);
    });
    return value;
  }
  // The same and A.
  double curve(std::size_t held, Space& s);
  void add_slopes(MatrixView x, const double* slopes, Space& s, Vector& to) const {
    for (std::size_t a = 0; a < m; ++a) {
      multiply(x, {slopes + a * x.cols(), x.cols()}, s.part);
      add(s.part, to.data() + a * d);
    }
  }

  // K = I + L'A L, factored, of the curvature that is stored; of steps to a mode times `inflated`.
  void factor(std::size_t held, Space& s, double inflated = 1) const;

  // s.v at the mode, with g, A and its factor there. Returns the log-likelihood without constant.
  double find_mode(std::size_t held, Space& s, bool& found);
  // K^-1 (L'g - v); returns its square in the metric K.
  double newton_step(Space& s) const;
  // Along the step as far as the objective grows. g and value are those of the place reached.
  bool move(std::size_t held, Space& s, double decrement, double& value) const;

  void add_agent(std::size_t i, Space& s, double* out);
  // What no coefficient moves; without further parameters it is the same at every point.
  double constant(std::size_t held);

  // A B and W = A - A B B'A, with B B' = L K^-1 L'.
  void marginal(Space& s) const;

  // s.t: the slope of -log|K| in x_c, times -1; s.u: that in D by way of g; s.psi.
  void laplace_slopes(std::size_t held, Space& s) const;
  // With a diagonal L the rows of B that belong to a predictor start with zeros, for a bound.
  std::size_t zeros(std::size_t a) const { return bound && diagonal ? a * c : 0; }
  // H_ab = z_a'L K^-1 L'z_b of every row of a block, into s.weights.
  void leverages(MatrixView x, Space& s) const;

  double quadrature(std::size_t held, Space& s) const;
  // The normal distribution of v with the largest bound: its mean s.v, and in `blocks` the curvature
  // behind its covariance K^-1. Returns the bound without constant.
  double find_bound(std::size_t held, Space& s, bool& found);
  // At s.v and the curvature that is stored; s.g, s.B, and the curvature that belongs there.
  double bound_at(std::size_t held, Space& s) const;
  double spread_bound(Space& s) const;  // s.B; returns the trace of K^-1

  std::size_t triangle() const { return q * (q + 1) / 2; }
  std::size_t slope_size() const { return full ? q * q : c; }
  std::size_t information_size() const { return full ? triangle() : c; }

  void collect(const Space& s, double* out) const;

  const EvidenceSums& evaluate(const GlmmPoint& where, bool want_full);

  const GlmmRows& rows;
  const Likelihood& likelihood;
  std::vector<std::size_t> random, coefficient;  // columns; which coefficient a random effect is of
  Team& team;
  std::size_t m, d, p, c, q, e;
  GaussHermite hermite;
  bool bound;
  double bound_gain, bound_share;
  Vector last_root,
      rescaled;  // of a bound: diagonals, and what keeps random effects where they were
  std::vector<double> v, blocks, constants;  // by agent held
  std::vector<char> known;  // whether blocks has the agent's curvature, of whatever point
  std::vector<std::unique_ptr<Space>> spaces;
  std::optional<AgentSum> sum;
  std::size_t sum_width = 0;
  EvidenceSums result;
  const GlmmPoint* point = nullptr;
  bool full = false, diagonal = true, all_random = true;
};

}  // namespace affpcl
