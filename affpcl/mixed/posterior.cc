#include "affpcl/mixed/posterior.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr double kClearGain = 1.35;  // of log evidence: by chance in one agent of twenty
constexpr int kWidenings = 40;       // factors of D that are tried: 2^(k/2)

// The factor of D that an agent's rows support, 1 unless the evidence is clear. With K = L'A L/s^2
// and h = L'(b - A x_c)/s^2 the log evidence of N(0, t D) against N(0, D) is a sum over the
// eigenvalues of K.
double widening(const Matrix& K, const Vector& h) {
  const std::size_t d = K.rows();
  Matrix one = K, Q = Matrix::identity(d);
  add_to_diagonal(1, one);
  const Cholesky C(one);
  C.forward(Q);
  Vector pulled = h;
  C.solve(pulled);
  const double slope = squared_norm(pulled) - (static_cast<double>(d) - squared_norm(Q.all()));
  if (!(slope > 0)) return 1;
  SymmetricEigen eigen = symmetric_eigen(K);
  Vector &e = eigen.values, c2 = multiply(eigen.vectors, h), terms(d);
  for (std::size_t j = 0; j < d; ++j) e[j] = std::max(e[j], 0.0), c2[j] *= c2[j];
  double best = 1, most = kClearGain;
  for (int k = 1; k <= kWidenings; ++k) {
    const double t = std::pow(2.0, k / 2.0);
    for (std::size_t j = 0; j < d; ++j) terms[j] = (1 + t * e[j]) / (1 + e[j]);
    logarithms(terms);
    for (std::size_t j = 0; j < d; ++j)
      terms[j] = c2[j] * t / (1 + t * e[j]) - c2[j] / (1 + e[j]) - terms[j];
    const double gain = sum(terms) / 2;
    if (gain > most) most = gain, best = t;
  }
  return best;
}

}  // namespace

Posterior agent_posterior(const Moments& m, const Decomposition& model, std::size_t agent) {
  const std::size_t d = m.d;
  const auto A = A_of(m, agent);
  const MatrixView D = as_matrix(model.variances.D, d), H = as_matrix(model.centre_cov, d);
  const double s2 = model.variances.s2;
  Vector r(b_of(m, agent).begin(), b_of(m, agent).end());
  add_product(-1, transposed(A), model.centre, r);  // b - A x_c
  Matrix root = root_of(D, is_diagonal(D));
  Matrix K = multiply(root, multiply(A, transposed(root)));
  divide(K.all(), s2);
  Vector h = multiply(root, r);
  divide(h, s2);
  const double widened = widening(K, h);
  for (double& v : root.all()) v *= std::sqrt(widened);
  for (double& v : K.all()) v *= widened;
  add_to_diagonal(1, K);
  Matrix half = transpose(root);
  Cholesky(K).forward(half);
  const Matrix P = multiply(half, transposed(half));
  Posterior posterior{model.centre, {}, {}, widened};
  const Vector Pr = multiply(transposed(P), r);
  for (std::size_t j = 0; j < d; ++j) posterior.x[j] += Pr[j] / s2;
  Matrix F = multiply(A, P);  // transposed: I - A P / s^2
  for (double& v : F.all()) v = -(v / s2);
  add_to_diagonal(1, F);
  // W = A F / s^2 is the agent's information on its random effects.
  Matrix unsure = multiply(F, A);
  for (std::size_t j = 0; j < d * d; ++j)
    unsure.all()[j] = widened * widened * (model.variance_cov[j] * (unsure.all()[j] / s2));
  const Matrix FHF = multiply(transposed(F), multiply(H, F));
  Matrix known = P;
  add(FHF.all(), known.all());
  symmetrise(known);
  Matrix cov = multiply(transposed(F), multiply(unsure, F));
  for (std::size_t j = 0; j < d * d; ++j) cov.all()[j] = known.all()[j] + 2 * cov.all()[j];
  symmetrise(cov);
  posterior.cov = cov.all();
  posterior.smoother = known.all();
  return posterior;
}

Posterior unseen_posterior(const Decomposition& model) {
  Posterior p{model.centre, model.centre_cov, {}, 1};
  for (std::size_t j = 0; j < p.cov.size(); ++j) p.cov[j] += model.variances.D[j];
  p.smoother = p.cov;
  return p;
}

}  // namespace affpcl
