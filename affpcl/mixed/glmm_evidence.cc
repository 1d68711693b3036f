#include "affpcl/mixed/glmm_evidence-inl.h"

namespace affpcl {
namespace {

constexpr double kDecrement = 1e-18;  // of the last step to a mode, squared, in its own metric
constexpr int kSteps = 400;           // to a mode, at most
constexpr double kFading = 0.04;      // a decrement that falls by less asks for new curvature

bool is_diagonal(MatrixView A) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k)
      if (j != k && A(j, k) != 0) return false;
  return true;
}
// Average information g'E_a W E_b g / 2 of the entries a = (j, k) and b of the lower triangle of a D
// with q rows.
template <class MatrixOf, class VectorOf>
void add_triangle(std::size_t q, MatrixOf W, VectorOf g, double* out) {
  const std::size_t size = q * (q + 1) / 2;
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

}  // namespace

RowBlock GlmmRows::block(std::size_t from, std::size_t count) const {
  return {.count = count,
          .y = y + from,
          .weight = weight == nullptr ? nullptr : weight + from,
          .trials = trials == nullptr ? nullptr : trials + from};
}

void add_curvature(MatrixView X, std::size_t m, double* w, MatrixSpan scaled, double* A) {
  const std::size_t d = X.rows(), count = X.cols();
  for (std::size_t a = 0; a < m; ++a)
    for (std::size_t b = 0; b <= a; ++b, w += count, A += d * d) {
      for (std::size_t r = 0; r < count && a == b; ++r) w[r] = std::sqrt(std::max(w[r], 0.0));
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t r = 0; r < count; ++r) scaled(j, r) = X(j, r) * w[r];
      if (a == b) {
        add_gram(1, scaled, {A, d, d});
      } else {
        add_product(1, scaled, transposed(X), {A, d, d});
      }
    }
}

void assemble(const double* blocks, std::size_t m, std::size_t d, MatrixSpan A) {
  for (std::size_t a = 0, at = 0; a < m; ++a)
    for (std::size_t b = 0; b <= a; ++b, ++at)
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k < d; ++k)
          A(a * d + j, b * d + k) = A(b * d + k, a * d + j) = blocks[(at * d + j) * d + k];
}

double GlmmEvidence::Impl::curve(std::size_t held, Space& s) {
  const std::size_t dd = d * d, pairs = likelihood.pairs();
  double* const A = blocks.data() + held * pairs * dd;
  std::fill(A, A + pairs * dd, 0.0);
  double value = 0;
  std::fill(s.g.begin(), s.g.end(), 0.0);
  each_block(held, s, s.beta, [&](const RowBlock& block, MatrixView x) {
    const std::size_t count = block.count;
    value += likelihood.curve(block, point->psi, s.eta.data(), s.slopes.data(), s.weights.data());
    add_slopes(x, s.slopes.data(), s, s.g);
    const MatrixSpan scaled(s.scaled.data(), d, count);
    add_curvature(x, m, s.weights.data(), scaled, A);
  });
  known[held] = 1;
  return value;
}

void GlmmEvidence::Impl::factor(std::size_t held, Space& s, double inflated) const {
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

double GlmmEvidence::Impl::find_mode(std::size_t held, Space& s, bool& found) {
  std::copy_n(v.data() + held * q, q, s.v.begin());
  coefficients_at(s.v, s);
  const double inflated = likelihood.curvature_bound(point->psi);
  bool fresh = known[held] == 0 || q == 0;
  double value = fresh ? curve(held, s) : slope(held, s);
  if (!std::isfinite(value) && !fresh) {  // too far from where the last point was
    std::fill(s.v.begin(), s.v.end(), 0.0);
    coefficients_at(s.v, s);
    value = curve(held, s), fresh = true;
  }
  factor(held, s, inflated);
  double last = std::numeric_limits<double>::infinity();
  found = q == 0;
  for (int k = 0; k < kSteps && !found; ++k) {
    const double decrement = newton_step(s);
    found = decrement <= kDecrement;
    if (found) break;
    if (!fresh && likelihood.curves() && decrement > kFading * last) {
      value = curve(held, s), fresh = true;
      factor(held, s, inflated);
      last = std::numeric_limits<double>::infinity();
      continue;
    }
    last = decrement;
    if (!move(held, s, decrement, value)) {
      if (fresh) break;
      coefficients_at(s.v, s);
      value = curve(held, s), fresh = true;
      factor(held, s, inflated);
      continue;
    }
    fresh = false;
  }
  coefficients_at(s.v, s);
  if (!fresh) value = curve(held, s);
  if (!fresh || inflated != 1) factor(held, s);
  std::copy(s.v.begin(), s.v.end(), v.begin() + static_cast<std::ptrdiff_t>(held * q));
  return value;
}

double GlmmEvidence::Impl::newton_step(Space& s) const {
  for (std::size_t j = 0; j < q; ++j) s.u[j] = s.g[coefficient[j]];
  multiply(transposed(point->root), s.u, s.r);
  for (std::size_t j = 0; j < q; ++j) s.step[j] = s.r[j] -= s.v[j];
  s.C.solve(s.step);
  return dot(s.r, s.step);
}

bool GlmmEvidence::Impl::move(std::size_t held, Space& s, double decrement, double& value) const {
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

void GlmmEvidence::Impl::add_agent(std::size_t i, Space& s, double* out) {
  const std::size_t held = rows.at(i);
  bool found = false;
  double value = bound ? find_bound(held, s, found) : find_mode(held, s, found);
  if (q > 0 && !bound) s.B = point->root, s.C.forward(s.B);
  marginal(s);
  if (bound) {
    std::fill(s.t.begin(), s.t.end(), 0.0);  // the bound is at its maximum in mode and curvature
  } else if (hermite.nodes.size() > 1) {
    value = quadrature(held, s);
  } else {
    value -= (squared_norm(s.v) + (q == 0 ? 0 : s.C.log_determinant())) / 2;
    laplace_slopes(held, s);
  }
  out[0] += value + constant(held);
  out[1] += found ? 0 : 1;
  collect(s, out + 2);
}

double GlmmEvidence::Impl::constant(std::size_t held) {
  if (e == 0 && !std::isnan(constants[held])) return constants[held];
  constants[held] = 0;
  for (const GlmmRows::Run& run : rows.runs[held])
    constants[held] += likelihood.constant(rows.block(run.from, run.to - run.from), point->psi);
  return constants[held];
}

void GlmmEvidence::Impl::marginal(Space& s) const {
  s.W = s.A;
  if (q == 0) return;
  if (all_random && m == 1) {
    multiply(s.A, s.B, s.AB);
  } else {
    for (std::size_t j = 0; j < p; ++j)
      for (std::size_t k = 0; k < q; ++k) s.A_random(j, k) = s.A(j, coefficient[k]);
    multiply(s.A_random, s.B, s.AB);
  }
  add_gram(-1, s.AB, s.W);
}

void GlmmEvidence::Impl::laplace_slopes(std::size_t held, Space& s) const {
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

void GlmmEvidence::Impl::leverages(MatrixView x, Space& s) const {
  const std::size_t count = x.cols();
  const MatrixView z = random_columns(x, s);
  const auto spread = [&](std::size_t a, std::size_t from) {
    return MatrixSpan(s.spread.data() + (a * q + from) * count, q - from, count);
  };
  for (std::size_t a = 0, end = 0; a < m; ++a) {
    const std::size_t width = q - zeros(a);
    const double* const B = bound && diagonal ? s.ends.data() + end : s.B.data() + a * c * q;
    multiply(transposed({B, c, width}), z, spread(a, zeros(a)));
    end += c * width;
  }
  for (std::size_t a = 0, at = 0; a < m; ++a)
    for (std::size_t b = 0; b <= a; ++b, ++at)
      column_dots(spread(a, zeros(a)), spread(b, zeros(a)), {s.weights.data() + at * count, count});
}

void GlmmEvidence::Impl::collect(const Space& s, double* out) const {
  for (std::size_t j = 0; j < p; ++j) *out++ += s.g[j] - s.t[j] / 2;
  add(s.W.all(), out), out += p * p;
  const auto W = [&](std::size_t j, std::size_t k) { return s.W(coefficient[j], coefficient[k]); };
  const auto g = [&](std::size_t j) { return s.g[coefficient[j]]; };
  const auto t = [&](std::size_t j) { return s.t[coefficient[j]]; };
  if (!full) {
    for (std::size_t j = 0; j < q; ++j) {
      out[j % c] +=
          hermite.nodes.size() > 1 ? s.D_slope : (g(j) * g(j) - W(j, j) - t(j) * g(j)) / 2;
      double *const average = out + c + (j % c) * c, *const expected = average + c * c;
      for (std::size_t k = 0; k < q; ++k) {
        average[k % c] += g(j) * W(j, k) * g(k) / 2;
        expected[k % c] += W(j, k) * W(j, k) / 2;
      }
    }
    out += c + 2 * c * c;
  } else {
    for (std::size_t j = 0; j < q; ++j)
      for (std::size_t k = 0; k < q; ++k)
        *out++ += (g(j) * g(k) - W(j, k) - (t(j) * g(k) + t(k) * g(j)) / 2) / 2;
    add_triangle(q, W, g, out);
    out += triangle() * triangle();
  }
  for (std::size_t j = 0; j < e; ++j) *out++ += s.psi[j];
  for (std::size_t j = 0; j < e; ++j)
    for (std::size_t k = 0; k < e; ++k) *out++ += s.psi[j] * s.psi[k];
}

const EvidenceSums& GlmmEvidence::Impl::evaluate(const GlmmPoint& where, bool want_full) {
  point = &where;
  full = want_full;
  diagonal = is_diagonal(where.root);
  rescaled.assign(q, 1.0);
  last_root.resize(q);
  for (std::size_t j = 0; j < q && bound; ++j) {
    const double now = where.root(j, j);
    if (diagonal && now > 0 && last_root[j] > 0) rescaled[j] = last_root[j] / now;
    last_root[j] = now;
  }
  const std::size_t size = information_size(),
                    width = 2 + p + p * p + slope_size() + (full ? 1 : 2) * size * size + e + e * e;
  if (width != sum_width)
    sum.emplace("likelihood and its slopes", width, rows.agents, team), sum_width = width;
  const double* at = (*sum)([&](std::size_t i, int worker, double* out) {
    add_agent(i, *spaces[static_cast<std::size_t>(worker)], out);
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
  result.D_slope = matrix(full ? q : 1, full ? q : c);
  result.D_information = matrix(size, size);
  result.D_expected = full ? Matrix() : matrix(size, size);
  for (std::size_t a = 0; a < size && full; ++a)
    for (std::size_t b = 0; b < a; ++b) result.D_information(b, a) = result.D_information(a, b);
  result.psi = vector(e);
  result.psi_information = matrix(e, e);
  return result;
}

GlmmEvidence::GlmmEvidence(const GlmmRows& rows, const Likelihood& likelihood, Options options,
                           Team& team)
    : impl_(std::make_unique<Impl>(rows, likelihood, std::move(options), team)) {}
GlmmEvidence::~GlmmEvidence() = default;

std::size_t GlmmEvidence::coefficients() const { return impl_->p; }
std::size_t GlmmEvidence::effects() const { return impl_->q; }
const EvidenceSums& GlmmEvidence::operator()(const GlmmPoint& point, bool full) {
  return impl_->evaluate(point, full);
}
const std::vector<double>& GlmmEvidence::modes() const { return impl_->v; }
const std::vector<double>& GlmmEvidence::curvatures() const { return impl_->blocks; }
void GlmmEvidence::start_at(const std::vector<double>& modes,
                            const std::vector<double>& curvatures) {
  impl_->v = modes;
  impl_->blocks = curvatures;
  std::fill(impl_->known.begin(), impl_->known.end(), 1);
}

}  // namespace affpcl
