#include "affpcl/mixed/laplace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr std::size_t kRows = 256;     // at a time: they stay in cache
constexpr double kDecrement = 1e-18;   // of the last step to a mode, squared, in its own metric
constexpr int kSteps = 400;            // to a mode, at most
constexpr double kFading = 0.04;       // a decrement that falls by less asks for new curvature

void add(std::span<const double> x, double* to) {
  for (std::size_t j = 0; j < x.size(); ++j) to[j] += x[j];
}
bool is_diagonal(MatrixView A) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k)
      if (j != k && A(j, k) != 0) return false;
  return true;
}

}  // namespace

RowBlock GlmmRows::block(std::size_t from, std::size_t count) const {
  return {.count = count,
          .y = y + from,
          .weight = weight == nullptr ? nullptr : weight + from,
          .trials = trials == nullptr ? nullptr : trials + from};
}

void assemble(const double* blocks, std::size_t m, std::size_t d, MatrixSpan A) {
  for (std::size_t a = 0, at = 0; a < m; ++a)
    for (std::size_t b = 0; b <= a; ++b, ++at)
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k < d; ++k)
          A(a * d + j, b * d + k) = A(b * d + k, a * d + j) = blocks[(at * d + j) * d + k];
}

GaussHermite::GaussHermite(int points) : nodes(static_cast<std::size_t>(points)), weights(nodes) {
  // Golub and Welsch (1969).
  Matrix J(nodes.size(), nodes.size());
  for (std::size_t k = 1; k < nodes.size(); ++k)
    J(k, k - 1) = J(k - 1, k) = std::sqrt(static_cast<double>(k) / 2);
  const SymmetricEigen eigen = symmetric_eigen(J);
  nodes = eigen.values;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    weights[k] = std::sqrt(std::numbers::pi) * eigen.vectors(k, 0) * eigen.vectors(k, 0);
}

struct Laplace::Impl {
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
    std::vector<double> x, scaled, random_x, eta, slopes, weights, spread;
    Vector beta, g, s, t, part, v, trial, r, step, u, Bs, Ps, psi;
    Matrix A, W, K, AL, B, A_random, AB;
    Cholesky C;
    double D_slope = 0;  // of quadrature
  };

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
  double curve(std::size_t held, Space& s) {
    const std::size_t dd = d * d, pairs = likelihood.pairs();
    double* const A = blocks.data() + held * pairs * dd;
    std::fill(A, A + pairs * dd, 0.0);
    double value = 0;
    std::fill(s.g.begin(), s.g.end(), 0.0);
    each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
      const std::size_t count = block.count;
      value += likelihood.curve(block, point->psi, s.eta.data(), s.slopes.data(),
                                s.weights.data());
      add_slopes(x, s.slopes.data(), s, s.g);
      const MatrixSpan scaled(s.scaled.data(), d, count);
      for (std::size_t a = 0, at = 0; a < m; ++a)
        for (std::size_t b = 0; b <= a; ++b, ++at) {
          // Two predictors of a row compete: their weight is negative.
          double* const w = s.weights.data() + at * count;
          for (std::size_t r = 0; r < count; ++r) w[r] = std::sqrt(std::abs(w[r]));
          for (std::size_t j = 0; j < d; ++j)
            for (std::size_t r = 0; r < count; ++r) scaled(j, r) = x(j, r) * w[r];
          add_gram(a == b ? 1 : -1, scaled, {A + at * dd, d, d});
        }
    });
    known[held] = 1;
    return value;
  }
  void add_slopes(MatrixView x, const double* slopes, Space& s, Vector& to) const {
    for (std::size_t a = 0; a < m; ++a) {
      multiply(x, {slopes + a * x.cols(), x.cols()}, s.part);
      add(s.part, to.data() + a * d);
    }
  }

  // K = I + L'A L, factored, of the curvature that is stored; of steps to a mode times `inflated`.
  void factor(std::size_t held, Space& s, double inflated = 1) const {
    assemble(blocks.data() + held * likelihood.pairs() * d * d, m, d, s.A);
    if (q == 0) return;
    const Matrix& L = point->root;
    const auto A = [&](std::size_t j, std::size_t k) { return s.A(coefficient[j], coefficient[k]); };
    if (diagonal) {
      for (std::size_t j = 0; j < q; ++j)
        for (std::size_t k = 0; k < q; ++k) s.K(j, k) = L(j, j) * A(j, k) * L(k, k);
    } else {
      Matrix& random_A = s.B;  // free until marginal()
      for (std::size_t j = 0; j < q; ++j)
        for (std::size_t k = 0; k < q; ++k) random_A(j, k) = A(j, k);
      multiply(random_A, L, s.AL);
      multiply(transposed(L), s.AL, s.K);
    }
    if (inflated != 1)
      for (double& entry : s.K.all()) entry *= inflated;
    for (std::size_t j = 0; j < q; ++j) s.K(j, j) += 1;
    s.C.factor(s.K);
  }

  // s.v at the mode, with g, A and its factor there. Returns the log-likelihood without constant.
  double find_mode(std::size_t held, Space& s, bool& found) {
    std::copy_n(v.data() + held * q, q, s.v.begin());
    coefficients_at(s.v, s);
    const double bound = likelihood.curvature_bound(point->psi);
    bool fresh = known[held] == 0 || q == 0;
    double value = fresh ? curve(held, s) : slope(held, s);
    if (!std::isfinite(value) && !fresh) {  // too far from where the last point was
      std::fill(s.v.begin(), s.v.end(), 0.0);
      coefficients_at(s.v, s);
      value = curve(held, s), fresh = true;
    }
    factor(held, s, bound);
    double last = std::numeric_limits<double>::infinity();
    found = q == 0;
    for (int k = 0; k < kSteps && !found; ++k) {
      const double decrement = newton_step(s);
      found = decrement <= kDecrement;
      if (found) break;
      if (!fresh && likelihood.curves() && decrement > kFading * last) {
        value = curve(held, s), fresh = true;
        factor(held, s, bound);
        last = std::numeric_limits<double>::infinity();
        continue;
      }
      last = decrement;
      if (!move(held, s, decrement, value)) {
        if (fresh) break;
        coefficients_at(s.v, s);
        value = curve(held, s), fresh = true;
        factor(held, s, bound);
        continue;
      }
      fresh = false;
    }
    coefficients_at(s.v, s);
    if (!fresh) value = curve(held, s);
    if (!fresh || bound != 1) factor(held, s);
    std::copy(s.v.begin(), s.v.end(), v.begin() + static_cast<std::ptrdiff_t>(held * q));
    return value;
  }
  // K^-1 (L'g - v); returns its square in the metric K.
  double newton_step(Space& s) const {
    for (std::size_t j = 0; j < q; ++j) s.u[j] = s.g[coefficient[j]];
    multiply(transposed(point->root), s.u, s.r);
    for (std::size_t j = 0; j < q; ++j) s.step[j] = s.r[j] -= s.v[j];
    s.C.solve(s.step);
    return dot(s.r, s.step);
  }
  // Along the step as far as the objective grows. g and value are those of the place reached.
  bool move(std::size_t held, Space& s, double decrement, double& value) const {
    const double old = value - squared_norm(s.v) / 2, slack = 1e-12 * (1 + std::abs(old));
    for (double share = 1; share > 1e-6; share /= 2) {
      for (std::size_t j = 0; j < q; ++j) s.trial[j] = s.v[j] + share * s.step[j];
      coefficients_at(s.trial, s);
      value = slope(held, s);
      if (value - squared_norm(s.trial) / 2 >= old + 1e-4 * share * decrement - slack) {
        s.v = s.trial;
        return true;
      }
    }
    return false;
  }

  void add_agent(std::size_t i, Space& s, double* out) {
    const std::size_t held = rows.at(i);
    bool found = false;
    double value = find_mode(held, s, found);
    marginal(s);
    if (hermite.nodes.size() > 1) {
      value = quadrature(held, s);
    } else {
      value -= (squared_norm(s.v) + (q == 0 ? 0 : s.C.log_determinant())) / 2;
      laplace_slopes(held, s);
    }
    out[0] += value + constant(held);
    out[1] += found ? 0 : 1;
    collect(s, out + 2);
  }
  // What no coefficient moves; without further parameters it is the same at every point.
  double constant(std::size_t held) {
    if (e == 0 && !std::isnan(constants[held])) return constants[held];
    constants[held] = 0;
    for (const GlmmRows::Run& run : rows.runs[held])
      constants[held] += likelihood.constant(rows.block(run.from, run.to - run.from), point->psi);
    return constants[held];
  }

  // B with B B' = L K^-1 L', A B, and W = A - A B B'A.
  void marginal(Space& s) const {
    s.W = s.A;
    if (q == 0) return;
    s.B = point->root;
    s.C.forward(s.B);
    if (all_random && m == 1) {
      multiply(s.A, s.B, s.AB);
    } else {
      for (std::size_t j = 0; j < p; ++j)
        for (std::size_t k = 0; k < q; ++k) s.A_random(j, k) = s.A(j, coefficient[k]);
      multiply(s.A_random, s.B, s.AB);
    }
    add_gram(-1, s.AB, s.W);
  }

  // s.t: the slope of -log|K| in x_c, times -1; s.u: that in D by way of g; s.psi.
  void laplace_slopes(std::size_t held, Space& s) const {
    std::fill(s.s.begin(), s.s.end(), 0.0);
    std::fill(s.psi.begin(), s.psi.end(), 0.0);
    if (q > 0) {
      each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
        leverages(x, s);
        likelihood.third(block, point->psi, s.eta.data(), s.weights.data(), s.slopes.data());
        add_slopes(x, s.slopes.data(), s, s.s);
      });
      for (std::size_t j = 0; j < q; ++j) s.u[j] = s.s[coefficient[j]];
      multiply(transposed(s.B), s.u, s.Bs);
      multiply(s.AB, s.Bs, s.t);
      for (std::size_t j = 0; j < p; ++j) s.t[j] = s.s[j] - s.t[j];
    } else {
      std::fill(s.t.begin(), s.t.end(), 0.0);
    }
    if (e == 0) return;
    if (q > 0) multiply(s.B, s.Bs, s.Ps);
    each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
      if (q > 0) {
        leverages(x, s);
        multiply(transposed(random_columns(x, s)), s.Ps, {s.slopes.data(), block.count});
      }
      likelihood.add_extras(block, point->psi, s.eta.data(), q > 0 ? s.weights.data() : nullptr,
                            q > 0 ? s.slopes.data() : nullptr, s.psi.data());
    });
  }
  // H_ab = z_a'L K^-1 L'z_b of every row of a block, into s.weights.
  void leverages(MatrixView x, Space& s) const {
    const std::size_t count = x.cols();
    const MatrixView z = random_columns(x, s);
    const auto spread = [&](std::size_t a) {
      return MatrixSpan(s.spread.data() + a * q * count, q, count);
    };
    for (std::size_t a = 0; a < m; ++a)
      multiply(transposed({s.B.data() + a * c * q, c, q}), z, spread(a));
    for (std::size_t a = 0, at = 0; a < m; ++a)
      for (std::size_t b = 0; b <= a; ++b, ++at)
        column_dots(spread(a), spread(b), {s.weights.data() + at * count, count});
  }

  // One random effect: log of the integral of exp(l - v^2 / 2) / sqrt(2 pi), l without constant, by
  // Gauss-Hermite points around the mode (slopes
  // are means over its posterior).
  double quadrature(std::size_t held, Space& s) const {
    const double sigma = point->root(0, 0), mode = s.v[0];
    const double width = std::sqrt(2 / s.K(0, 0));
    const std::size_t k = hermite.nodes.size();
    Vector at(k), log_p(k), share(k), pull(k), eta(kRows), psi(e);
    for (std::size_t n = 0; n < k; ++n) at[n] = mode + width * hermite.nodes[n];
    const auto eta_at = [&](std::size_t n, MatrixView x) {
      for (std::size_t r = 0; r < x.cols(); ++r)
        eta[r] = s.eta[r] + x(random[0], r) * sigma * at[n];
    };
    each_block(held, s, point->centre, [&](const RowBlock& block, MatrixView x) {
      for (std::size_t n = 0; n < k; ++n) {
        eta_at(n, x);
        log_p[n] += likelihood.slope(block, point->psi, eta.data(), s.slopes.data());
        pull[n] += dot(x.row(random[0]), {s.slopes.data(), x.cols()});
      }
    });
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::size_t n = 0; n < k; ++n) {
      log_p[n] += hermite.nodes[n] * hermite.nodes[n] - at[n] * at[n] / 2 +
                  std::log(hermite.weights[n]);
      top = std::max(top, log_p[n]);
    }
    for (std::size_t n = 0; n < k; ++n) total += share[n] = std::exp(log_p[n] - top);
    for (double& w : share) w /= total;
    // The curvature's g is what information is made of; the exact slope goes elsewhere.
    const double g = s.g[random[0]];
    double slope = 0;
    for (std::size_t n = 0; n < k; ++n) slope += share[n] * at[n] * pull[n];
    Vector mean(p);
    Vector slopes(kRows);
    std::fill(s.psi.begin(), s.psi.end(), 0.0);
    each_block(held, s, point->centre, [&](const RowBlock& block, MatrixView x) {
      std::fill(slopes.begin(), slopes.end(), 0.0);
      for (std::size_t n = 0; n < k; ++n) {
        eta_at(n, x);
        likelihood.slope(block, point->psi, eta.data(), s.slopes.data());
        for (std::size_t r = 0; r < block.count; ++r) slopes[r] += share[n] * s.slopes[r];
        std::fill(psi.begin(), psi.end(), 0.0);
        likelihood.add_extras(block, point->psi, eta.data(), nullptr, nullptr, psi.data());
        for (std::size_t j = 0; j < e; ++j) s.psi[j] += share[n] * psi[j];
      }
      add_slopes(x, slopes.data(), s, mean);
    });
    // collect() takes g - t / 2.
    for (std::size_t j = 0; j < p; ++j) s.t[j] = 2 * (s.g[j] - mean[j]);
    s.D_slope = sigma == 0 ? (g * g - s.W(random[0], random[0])) / 2 : slope / (2 * sigma);
    return top + std::log(total) + std::log(width) - std::log(2 * std::numbers::pi) / 2;
  }

  std::size_t triangle() const { return q * (q + 1) / 2; }
  std::size_t slope_size() const { return full ? q * q : q; }
  std::size_t information_size() const { return full ? triangle() : q; }

  void collect(const Space& s, double* out) const {
    for (std::size_t j = 0; j < p; ++j) *out++ += s.g[j] - s.t[j] / 2;
    add(s.W.all(), out), out += p * p;
    const auto W = [&](std::size_t j, std::size_t k) { return s.W(coefficient[j], coefficient[k]); };
    const auto g = [&](std::size_t j) { return s.g[coefficient[j]]; };
    const auto t = [&](std::size_t j) { return s.t[coefficient[j]]; };
    if (!full) {
      for (std::size_t j = 0; j < q; ++j)
        *out++ += hermite.nodes.size() > 1 ? s.D_slope
                                           : (g(j) * g(j) - W(j, j) - t(j) * g(j)) / 2;
      for (std::size_t j = 0; j < q; ++j)
        for (std::size_t k = 0; k < q; ++k) *out++ += g(j) * W(j, k) * g(k) / 2;
      for (std::size_t j = 0; j < q; ++j)
        for (std::size_t k = 0; k < q; ++k) *out++ += W(j, k) * W(j, k) / 2;
    } else {
      for (std::size_t j = 0; j < q; ++j)
        for (std::size_t k = 0; k < q; ++k)
          *out++ += (g(j) * g(k) - W(j, k) - (t(j) * g(k) + t(k) * g(j)) / 2) / 2;
      collect_triangle(W, g, out);
      out += triangle() * triangle();
    }
    for (std::size_t j = 0; j < e; ++j) *out++ += s.psi[j];
    for (std::size_t j = 0; j < e; ++j)
      for (std::size_t k = 0; k < e; ++k) *out++ += s.psi[j] * s.psi[k];
  }
  // Average information g'E_a W E_b g / 2 of the entries a = (j, k) and b of D's lower triangle.
  template <class MatrixOf, class VectorOf>
  void collect_triangle(MatrixOf W, VectorOf g, double* out) const {
    const std::size_t size = triangle();
    for (std::size_t j = 0, a = 0; j < q; ++j)
      for (std::size_t k = 0; k <= j; ++k, ++a)
        for (std::size_t l = 0, b = 0; l <= j; ++l)
          for (std::size_t n = 0; n <= l && b <= a; ++n, ++b) {
            double term = g(k) * W(j, l) * g(n);
            if (j != k) term += g(j) * W(k, l) * g(n);
            if (l != n) term += g(k) * W(j, n) * g(l);
            if (j != k && l != n) term += g(j) * W(k, n) * g(l);
            out[a * size + b] += term / 2;
          }
  }

  const EvidenceSums& evaluate(const GlmmPoint& where, bool want_full) {
    point = &where;
    full = want_full;
    diagonal = is_diagonal(where.root);
    const std::size_t size = information_size(),
                      width = 2 + p + p * p + slope_size() + (full ? 1 : 2) * size * size + e + e * e;
    if (width != sum_width) sum = TeamSum(width, team.workers()), sum_width = width;
    const double* at =
        sum(team, agent_leaves(rows.agents), [&](std::int64_t leaf, int worker, double* out) {
          const Leaves run = agents_in({leaf, leaf + 1}, rows.agents);
          for (std::int64_t i = run.first; i < run.last; ++i)
            add_agent(static_cast<std::size_t>(i), *spaces[static_cast<std::size_t>(worker)], out);
        });
    const auto vector = [&](std::size_t n) {
      const double* const from = std::exchange(at, at + n);
      return Vector(from, at);
    };
    const auto matrix = [&](std::size_t r, std::size_t k) {
      return Matrix(MatrixView(std::exchange(at, at + r * k), r, k));
    };
    result.value = *at++;
    result.unfinished = *at++;
    result.centre = vector(p);
    result.information = matrix(p, p);
    result.D_slope = matrix(full ? q : 1, q);
    result.D_information = matrix(size, size);
    result.D_expected = full ? Matrix() : matrix(size, size);
    for (std::size_t a = 0; a < size && full; ++a)
      for (std::size_t b = 0; b < a; ++b) result.D_information(b, a) = result.D_information(a, b);
    result.psi = vector(e);
    result.psi_information = matrix(e, e);
    return result;
  }

  const GlmmRows& rows;
  const Likelihood& likelihood;
  std::vector<std::size_t> random, coefficient;  // columns; which coefficient a random effect is of
  Team& team;
  std::size_t m, d, p, c, q, e;
  GaussHermite hermite;
  std::vector<double> v, blocks, constants;  // by agent held
  std::vector<char> known;  // whether blocks has the agent's curvature, of whatever point
  std::vector<std::unique_ptr<Space>> spaces;
  TeamSum sum;
  std::size_t sum_width = 0;
  EvidenceSums result;
  const GlmmPoint* point = nullptr;
  bool full = false, diagonal = true, all_random = true;
};

Laplace::Laplace(const GlmmRows& rows, const Likelihood& likelihood, Options options, Team& team)
    : impl_(std::make_unique<Impl>(rows, likelihood, std::move(options), team)) {}
Laplace::~Laplace() = default;

std::size_t Laplace::coefficients() const { return impl_->p; }
std::size_t Laplace::effects() const { return impl_->q; }
const EvidenceSums& Laplace::operator()(const GlmmPoint& point, bool full) {
  return impl_->evaluate(point, full);
}
const std::vector<double>& Laplace::modes() const { return impl_->v; }
const std::vector<double>& Laplace::curvatures() const { return impl_->blocks; }
void Laplace::start_at(const std::vector<double>& modes, const std::vector<double>& curvatures) {
  impl_->v = modes;
  impl_->blocks = curvatures;
  std::fill(impl_->known.begin(), impl_->known.end(), 1);
}

}  // namespace affpcl
