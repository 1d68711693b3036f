// Coefficients of agents, with what they leave open, at a generalised linear mixed model.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/mixed/glmm.h"

namespace affpcl {

namespace {

// The coefficient that random effect j of all predictors belongs to.
std::size_t coefficient(const GlmmLearnt& learnt, std::size_t j) {
  const std::size_t c = learnt.random.size();
  return j / c * learnt.columns + learnt.random[j % c];
}

// Curvature A of an agent's rows, covariance P of its random effects, F = I - P A.
struct Shrinkage {
  Matrix A, P, F;
};
Shrinkage shrinkage(const GlmmLearnt& learnt, std::size_t held) {
  const std::size_t m = learnt.predictors, d = learnt.columns, p = m * d;
  const std::size_t q = m * learnt.random.size();
  Shrinkage s{Matrix(p, p), Matrix(p, p), Matrix::identity(p)};
  assemble(learnt.curvatures.data() + held * m * (m + 1) / 2 * d * d, m, d, s.A);
  if (q == 0) return s;
  const auto at = [&](std::size_t j) { return coefficient(learnt, j); };
  Matrix random_A(q, q), B = learnt.best.point.root;
  for (std::size_t j = 0; j < q; ++j)
    for (std::size_t k = 0; k < q; ++k) random_A(j, k) = s.A(at(j), at(k));
  Matrix K = multiply(transposed(B), multiply(random_A, B));
  for (std::size_t j = 0; j < q; ++j) K(j, j) += 1;
  Cholesky(K).forward(B);
  const Matrix effects = multiply(B, transposed(B));
  for (std::size_t j = 0; j < q; ++j)
    for (std::size_t k = 0; k < q; ++k) s.P(at(j), at(k)) = effects(j, k);
  add_product(-1, s.P, s.A, s.F);
  return s;
}

}  // namespace

Posterior glmm_posterior(const GlmmLearnt& learnt, std::size_t held) {
  const Glmm& model = learnt.best;
  const std::size_t p = learnt.predictors * learnt.columns;
  const std::size_t q = learnt.predictors * learnt.random.size();
  const auto [A, P, F] = shrinkage(learnt, held);
  Posterior posterior{model.point.centre, {}, {}, 1};
  Matrix U(p, p);  // covariance of the variances, by coefficient
  if (q > 0) {
    const auto at = [&](std::size_t j) { return coefficient(learnt, j); };
    const Vector u = multiply(model.point.root, {learnt.modes.data() + held * q, q});
    for (std::size_t j = 0; j < q; ++j) {
      posterior.x[at(j)] += u[j];
      for (std::size_t k = 0; k < q; ++k) U(at(j), at(k)) = model.spread_cov(j, k);
    }
  }
  const Matrix W = multiply(A, F);
  Matrix known = multiply(F, multiply(model.centre_cov, transposed(F)));
  for (std::size_t j = 0; j < p * p; ++j) known.all()[j] += P.all()[j];
  symmetrise(known);
  Matrix unsure(p, p);
  for (std::size_t j = 0; j < p * p; ++j) unsure.all()[j] = 2 * U.all()[j] * W.all()[j];
  Matrix cov = multiply(F, multiply(unsure, transposed(F)));
  for (std::size_t j = 0; j < p * p; ++j) cov.all()[j] += known.all()[j];
  symmetrise(cov);
  posterior.cov = cov.all();
  posterior.smoother = known.all();
  return posterior;
}

double glmm_wider(const GlmmLearnt& learnt, std::size_t held, std::span<const double> along) {
  const std::size_t q = learnt.predictors * learnt.random.size();
  const Vector error = multiply(transposed(shrinkage(learnt, held).F), along);
  double wider = 0;
  for (std::size_t j = 0; j < q; ++j) {
    const double sd = std::sqrt(std::max(0.0, learnt.best.spread_cov(j, j)));
    if (!(sd > 0)) continue;
    const double at = learnt.best.D(j, j) / sd, e = error[coefficient(learnt, j)];
    const double density = std::exp(-at * at / 2) / std::sqrt(2 * std::numbers::pi);
    wider += e * e * sd * density / (std::erfc(-at / std::numbers::sqrt2) / 2);
  }
  return wider;
}

Posterior glmm_unseen(const GlmmLearnt& learnt) {
  const Glmm& model = learnt.best;
  const std::size_t d = learnt.columns, c = learnt.random.size(), q = learnt.predictors * c;
  Matrix cov = model.centre_cov;
  const auto at = [&](std::size_t j) { return j / c * d + learnt.random[j % c]; };
  for (std::size_t j = 0; j < q; ++j)
    for (std::size_t k = 0; k < q; ++k) cov(at(j), at(k)) += model.D(j, k);
  return {model.point.centre, cov.all(), cov.all(), 1};
}

}  // namespace affpcl
