#include "affpcl/mixed/levels_posterior.h"

#include <cmath>

#include "affpcl/mixed/algebra-inl.h"

namespace affpcl {

using namespace mixed;

namespace {

constexpr double kLeastInformation = 0.01;  // on a variance: it is hardly above ten

}  // namespace

LevelPosteriors::LevelPosteriors(const LevelEffects& effects, LevelEvidence& evidence)
    : e_(evidence), variance_cov_(evidence.moments().d, evidence.moments().d) {
  evidence.slopes(effects);
  const std::size_t p = effects.groups, q = effects.random.size();
  AgentSum sum("information", p * p, e_.moments().n, e_.team());
  Matrix information = MatrixView(sum([&](std::size_t i, double* out) {
                                    const Matrix W = e_.agent_information(i);
                                    for (std::size_t k = 0; k < q; ++k)
                                      for (std::size_t l = 0; l < q; ++l) {
                                        const double w = W(effects.random[k], effects.random[l]);
                                        out[effects.group[k] * p + effects.group[l]] += w * w / 2;
                                      }
                                  }),
                                  p, p);
  add_to_diagonal(kLeastInformation, information);
  const Matrix inverse = Ldlt(information).inverse();
  for (std::size_t k = 0; k < q; ++k)
    for (std::size_t l = 0; l < q; ++l)
      variance_cov_(effects.random[k], effects.random[l]) =
          inverse(effects.group[k], effects.group[l]);
  double of_tau = kLeastInformation;
  for (std::size_t g = 0; g < e_.cells().levels; ++g)
    of_tau += e_.level_information(g) * e_.level_information(g) / 2;
  tau_variance_ = 1 / of_tau;
}

double LevelPosteriors::variance(std::size_t g) const {
  const double W = e_.level_information(g), F = 1 - e_.at().tau2 * W;
  return known(g) + 2 * tau_variance_ * F * W * F;
}

LevelPosteriors::Agent LevelPosteriors::posterior(std::size_t i, double times) const {
  const Moments& m = e_.moments();
  const LevelCells& cells = e_.cells();
  const std::vector<std::size_t>& random = e_.random();
  const std::size_t d = m.d, q = random.size(), first = cells.first[m.at(i)];
  const std::size_t count = cells.first[m.at(i) + 1] - first;
  const auto A = A_of(m, i);
  const double s2 = e_.at().s2;
  Matrix K(q, q), half(d, q);  // half: L C'^-1, so P = half half'
  for (std::size_t k = 0; k < q; ++k) {
    const double root = std::sqrt(e_.at().D[k]);
    for (std::size_t l = 0; l < q; ++l)
      K(k, l) = root * A(random[k], random[l]) * std::sqrt(e_.at().D[l]) / s2;
    K(k, k) += 1;
    half(random[k], k) = root;
  }
  Cholesky(K).forward(half);
  const Matrix P = multiply(half, transposed(half));
  const MatrixView Z(cells.X.data() + first * d, count, d);
  Vector r(b_of(m, i).begin(), b_of(m, i).end());
  add_product(-1, transposed(A), e_.centre(), r);
  Matrix centre_level(count, d), level_cov(count, count);  // of its levels
  for (std::size_t c = 0; c < count; ++c) {
    const std::size_t g = cells.level[first + c];
    for (std::size_t j = 0; j < d; ++j) r[j] -= Z(c, j) * e_.level_effects()[g];
    e_.centre_level_cov(g, centre_level.row(c));
    for (std::size_t e = 0; e < count; ++e)
      level_cov(c, e) = e_.level_cov(g, cells.level[first + e]);
  }
  Agent a{multiply(P, r), {}, P, {}};
  for (std::size_t j = 0; j < d; ++j) a.x[j] = times * e_.centre()[j] + a.x[j] / s2;
  // F x_c - G w + what does not depend on them.
  Matrix F = multiply(P, A), G = multiply(Z, P);  // G by cell
  for (double& v : F.all()) v = -(v / s2);
  add_to_diagonal(times, F);
  divide(G.all(), s2);
  a.cross = multiply(centre_level, transposed(F));
  add_product(-1, level_cov, G, a.cross);
  add(multiply(F, multiply(e_.centre_cov(), transposed(F))).all(), a.known.all());
  const Matrix FCG = multiply(multiply(F, transposed(centre_level)), G);
  const Matrix GCG = multiply(transposed(G), multiply(level_cov, G));
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < d; ++k) a.known(j, k) += GCG(j, k) - FCG(j, k) - FCG(k, j);
  symmetrise(a.known);
  Matrix unsure = e_.agent_information(i), shrunk = Matrix::identity(d);  // I - D W
  for (std::size_t k = 0; k < q; ++k)
    for (std::size_t j = 0; j < d; ++j) shrunk(random[k], j) -= e_.at().D[k] * unsure(random[k], j);
  for (std::size_t j = 0; j < d * d; ++j) unsure.all()[j] *= variance_cov_.all()[j];
  const Matrix more = multiply(shrunk, multiply(unsure, transposed(shrunk)));
  a.cov = a.known;
  for (std::size_t j = 0; j < d * d; ++j) a.cov.all()[j] += 2 * more.all()[j];
  symmetrise(a.cov);
  return a;
}

}  // namespace affpcl
