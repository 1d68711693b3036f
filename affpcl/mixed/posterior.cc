#include "affpcl/mixed/posterior.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {
namespace {

using namespace mixed;
using Grid = LawGrid;

constexpr double kNoWeight = 1e-12;  // of a value of f / t that is left out
constexpr double kOutlying = 0.5;    // probability from which an agent is called outlying

// Fills in cov and smoother. S is the covariance of u_i for known x_c over the noise; `spread` is
// that covariance, F = I - S A. W = A F / s2 is the agent's information on its random effects.
void add_uncertainty(const Moments& m, const Decomposition& model, std::size_t agent,
                     const Matrix& S, const Matrix& spread, double s2, double wide, Posterior& p) {
  const std::size_t d = m.d;
  const auto A = A_of(m, agent);
  Matrix F = multiply(A, S);  // transposed
  for (double& v : F.all()) v = -v;
  add_to_diagonal(1, F);
  Matrix unsure = multiply(F, A);
  for (std::size_t j = 0; j < d * d; ++j)
    unsure.all()[j] = wide * wide * (model.variance_cov[j] * (unsure.all()[j] / s2));
  const Matrix FHF = multiply(transposed(F), multiply(as_matrix(model.centre_cov, d), F));
  const Matrix FUF = multiply(transposed(F), multiply(unsure, F));
  Matrix known(d, d), cov(d, d);
  for (std::size_t j = 0; j < d * d; ++j) {
    known.all()[j] = s2 * S.all()[j] + FHF.all()[j];
    cov.all()[j] = spread.all()[j] + FHF.all()[j] + 2 * FUF.all()[j];
  }
  symmetrise(known);
  symmetrise(cov);
  p.smoother = known.all();
  p.cov = cov.all();
}

// basis' diag(values) basis
Matrix in_basis(const Matrix& basis, const Vector& values) {
  Matrix scaled = basis;
  for (std::size_t k = 0; k < values.size(); ++k)
    for (double& v : scaled.row(k)) v *= values[k];
  return multiply(transposed(basis), scaled);
}

// x averaged over the agent's f and t, at one form of D.
Vector mean_over_law(const Moments& m, const Decomposition& model, const Matrix& root,
                     const AgentLaw& law, std::size_t agent) {
  const std::size_t d = m.d;
  const double s2 = model.variances.s2;
  const Spectrum of(m, root, model.centre, agent);
  const AgentGrid::Weights w = AgentGrid(of, s2).weights(law);
  Vector kc(d), x = model.centre;
  for (std::size_t r = 0; r < Grid::kRatios; ++r)
    for (std::size_t j = 0; j < d && w.ratio[r] >= kNoWeight; ++j)
      kc[j] += w.ratio[r] * (1 / (s2 * Grid::ratios()[r] + of.e[j]));
  for (std::size_t j = 0; j < d; ++j) kc[j] *= of.c[j];
  add(multiply(transposed(of.basis), kc), x);
  return x;
}

// Averaged over the agent's f and t, at one form of D.
Posterior over_law(const Moments& m, const Decomposition& model, const Matrix& root,
                   const AgentLaw& law, std::size_t agent) {
  const std::size_t d = m.d;
  const double s2 = model.variances.s2;
  const Spectrum of(m, root, model.centre, agent);
  const AgentGrid::Weights w = AgentGrid(of, s2).weights(law);
  // At one r the mean is x_c + basis' (k c) with k = 1 / (r s^2 + e), and the covariance f s^2 k.
  Vector mean(d), noise(d), k(d);
  Matrix squares(d, d);
  for (std::size_t r = 0; r < Grid::kRatios; ++r) {
    if (w.ratio[r] < kNoWeight) continue;
    for (std::size_t j = 0; j < d; ++j) {
      k[j] = 1 / (s2 * Grid::ratios()[r] + of.e[j]);
      mean[j] += w.ratio[r] * k[j];
      noise[j] += w.noise_ratio[r] * s2 * k[j];
    }
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t l = 0; l < d; ++l) squares(j, l) += w.ratio[r] * k[j] * k[l];
  }
  Vector kc(d);
  for (std::size_t j = 0; j < d; ++j) kc[j] = mean[j] * of.c[j];
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t l = 0; l < d; ++l)
      squares(j, l) = (squares(j, l) - mean[j] * mean[l]) * of.c[j] * of.c[l];
    squares(j, j) += noise[j];
  }
  Posterior p;
  p.x = model.centre;
  add(multiply(transposed(of.basis), kc), p.x);
  p.s2 = s2 * w.noise;
  p.widened = w.outlying > kOutlying ? 1 / w.inverse_wide : 1;
  const Matrix spread = multiply(transposed(of.basis), multiply(squares, of.basis));
  add_uncertainty(m, model, agent, in_basis(of.basis, mean), spread, s2 / w.inverse_noise,
                  1 / w.inverse_wide, p);
  for (double& v : p.smoother) v *= w.noise * w.inverse_noise;  // leverage is over p.s2
  return p;
}

// The mean and the covariance of a mixture of posteriors.
Posterior mixed_over(const std::vector<WeightedForm>& forms, std::vector<Posterior> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  const std::size_t d = parts[0].x.size();
  Posterior all{Vector(d), Vector(d * d), Vector(d * d), 0, 1};
  double log_widened = 0;
  for (std::size_t f = 0; f < parts.size(); ++f) {
    const double weight = forms[f].weight;
    for (std::size_t j = 0; j < d; ++j) all.x[j] += weight * parts[f].x[j];
    all.s2 += weight * parts[f].s2;
    log_widened += weight * std::log(parts[f].widened);
  }
  all.widened = std::exp(log_widened);
  for (std::size_t f = 0; f < parts.size(); ++f) {
    const Posterior& p = parts[f];
    const double weight = forms[f].weight;
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) {
        const double apart = (p.x[j] - all.x[j]) * (p.x[k] - all.x[k]);
        all.cov[j * d + k] += weight * (p.cov[j * d + k] + apart);
        all.smoother[j * d + k] += weight * (all.s2 / p.s2) * p.smoother[j * d + k];
      }
  }
  return all;
}

}  // namespace

Posterior agent_posterior(const Moments& m, const Decomposition& model, std::size_t agent) {
  const std::size_t d = m.d;
  const auto A = A_of(m, agent);
  const MatrixView D = as_matrix(model.variances.D, d);
  const double s2 = model.variances.s2, wide = m.wide[m.at(agent)];
  Vector r(b_of(m, agent).begin(), b_of(m, agent).end());
  add_product(-1, transposed(A), model.centre, r);  // b - A x_c
  Matrix root = root_of(D, is_diagonal(D));
  for (double& v : root.all()) v *= std::sqrt(wide);
  Matrix K = multiply(root, multiply(A, transposed(root)));
  divide(K.all(), s2);
  add_to_diagonal(1, K);
  Matrix half = transpose(root);
  Cholesky(K).forward(half);
  const Matrix P = multiply(half, transposed(half));
  Matrix S = P;
  divide(S.all(), s2);
  Posterior posterior{.x = model.centre, .cov = {}, .smoother = {}, .s2 = s2, .widened = wide};
  add(multiply(transposed(S), r), posterior.x);
  add_uncertainty(m, model, agent, S, P, s2, wide, posterior);
  return posterior;
}

Posterior averaged_posterior(const Moments& m, const Learnt& learnt, std::size_t agent) {
  std::vector<Posterior> parts;
  for (const WeightedForm& form : learnt.forms)
    parts.push_back(over_law(m, form.model, form.root, learnt.law, agent));
  return mixed_over(learnt.forms, std::move(parts));
}

std::vector<double> averaged_coefficients(const Moments& m, const Learnt& learnt,
                                          std::size_t agent) {
  Vector x(m.d);
  for (const WeightedForm& form : learnt.forms) {
    const Vector part = mean_over_law(m, form.model, form.root, learnt.law, agent);
    if (learnt.forms.size() == 1) return part;
    for (std::size_t j = 0; j < m.d; ++j) x[j] += form.weight * part[j];
  }
  return x;
}

Posterior unseen_posterior(const Decomposition& model) {
  Posterior p{model.centre, model.centre_cov, {}, model.variances.s2, 1};
  for (std::size_t j = 0; j < p.cov.size(); ++j) p.cov[j] += model.variances.D[j];
  p.smoother = p.cov;
  return p;
}

Posterior averaged_unseen(const Learnt& learnt) {
  std::vector<Posterior> parts;
  for (const WeightedForm& form : learnt.forms) parts.push_back(unseen_posterior(form.model));
  Posterior p = mixed_over(learnt.forms, std::move(parts));
  p.s2 *= learnt.law.mean_noise();
  return p;
}

}  // namespace affpcl
