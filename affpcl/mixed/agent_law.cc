#include "affpcl/mixed/agent_law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

using namespace mixed;
using Grid = LawGrid;

// What v and the share of outlying agents may be. Half of the prior is on equal noise.
constexpr std::array kVariances = {0.0, 0.03, 0.1, 0.3, 1.0, 3.0};
constexpr std::array kVarianceWeights = {5.0, 1.0, 1.0, 1.0, 1.0, 1.0};
constexpr std::array kShares = {0.0, 0.03, 0.1, 0.3};
constexpr std::size_t kLaws = kVariances.size() * kShares.size();
constexpr double kLeastLikelihood = 1e-300;  // instead of the logarithm of 0
constexpr double kLargestProduct = 1e100;    // of factors before their logarithm is taken
constexpr double kLeastWeight = 1e-9;        // of a law: an agent may contradict all the others

Vector powers(std::size_t count, double step, double first) {
  Vector at(count);
  for (std::size_t k = 0; k < count; ++k) at[k] = std::exp(step * static_cast<double>(k) + first);
  return at;
}

// The normal law of log f with variance v, on the grid.
Vector noise_prior(double v) {
  Vector p(Grid::kNoises);
  if (v == 0) {
    p[Grid::kReach] = 1;
    return p;
  }
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double at = Grid::kStep * (static_cast<double>(k) - static_cast<double>(Grid::kReach));
    p[k] = std::exp(-at * at / (2 * v));
  }
  divide(p, sum(p));
  return p;
}

const std::array<Vector, kVariances.size()>& noise_priors() {
  static const std::array kPriors = [] {
    std::array<Vector, kVariances.size()> priors;
    for (std::size_t v = 0; v < priors.size(); ++v) priors[v] = noise_prior(kVariances[v]);
    return priors;
  }();
  return kPriors;
}

// log p(rows of an agent | v, share) for every pair, added to out. `grid` is AgentGrid::summarise.
void add_evidence(MatrixView grid, double log_top, double* out) {
  for (const Vector& prior : noise_priors()) {
    const double usual = dot(prior, grid.row(0)), outlying = dot(prior, grid.row(1));
    for (double share : kShares)
      *out++ +=
          log_top + std::log(std::max((1 - share) * usual + share * outlying, kLeastLikelihood));
  }
}

AgentLaw mean_law(std::span<const double> log_evidence) {
  Vector weight(log_evidence.begin(), log_evidence.end());
  const double top = *std::max_element(weight.begin(), weight.end());
  for (std::size_t k = 0; k < kLaws; ++k)
    weight[k] =
        std::max(std::exp(weight[k] - top), kLeastWeight) * kVarianceWeights[k / kShares.size()];
  divide(weight, sum(weight));
  AgentLaw law{Vector(Grid::kNoises), Vector(Grid::kNoises)};
  const double* w = weight.data();
  for (const Vector& prior : noise_priors())
    for (double share : kShares) {
      for (std::size_t k = 0; k < Grid::kNoises; ++k) {
        law.usual[k] += *w * (1 - share) * prior[k];
        law.outlying[k] += *w * share * prior[k];
      }
      ++w;
    }
  return law;
}

}  // namespace

const Vector& LawGrid::noises() {
  static const Vector kValues = powers(kNoises, kStep, -kStep * static_cast<double>(kReach));
  return kValues;
}
const Vector& LawGrid::wides() {
  static const Vector kValues = powers(kWide, kStep * static_cast<double>(kWideSteps), 0);
  return kValues;
}
const Vector& LawGrid::ratios() {
  static const Vector kValues =
      powers(kRatios, kStep, -kStep * static_cast<double>(kReach + (kWide - 1) * kWideSteps));
  return kValues;
}

const Vector& LawGrid::odds() {
  static const Vector kValues = [] {
    Vector odds;
    for (std::size_t w = 1; w < kWide; ++w) odds.push_back(1 / wides()[w]);
    divide(odds, sum(odds));
    return odds;
  }();
  return kValues;
}

AgentLaw AgentLaw::plain() { return {noise_prior(0), Vector(Grid::kNoises)}; }

bool AgentLaw::is_plain() const { return usual[Grid::kReach] == 1; }

double AgentLaw::mean_noise() const {
  return dot(usual, Grid::noises()) + dot(outlying, Grid::noises());
}

Spectrum::Spectrum(const Moments& m, MatrixView root, std::span<const double> centre, std::size_t i)
    : rows(m.rows[m.at(i)]) {
  const MatrixView A = A_of(m, i);
  SymmetricEigen eigen = symmetric_eigen(multiply(root, multiply(A, transposed(root))));
  e = std::move(eigen.values);
  for (double& v : e) v = std::max(v, 0.0);
  basis = multiply(eigen.vectors, root);
  Vector pull = multiply(transposed(A), centre), r(b_of(m, i).begin(), b_of(m, i).end());
  residual = std::max(0.0, m.yy[m.at(i)] - 2 * dot(r, centre) + dot(centre, pull));
  for (std::size_t j = 0; j < r.size(); ++j) r[j] -= pull[j];
  c = multiply(basis, r);
}

// -2 log p(y | f, t) = (residual - sum c^2 / (r s^2 + e)) / (f s^2) + N log(f s^2)
//                      + sum log(1 + e / (r s^2)),  r = f / t
AgentGrid::AgentGrid(const Spectrum& of, double s2) : p_(Grid::kWide, Grid::kNoises) {
  const std::size_t d = of.e.size();
  std::array<double, Grid::kRatios> explained{}, log_det{};
  Vector c2 = of.c;
  for (double& v : c2) v *= v;
  for (std::size_t k = 0; k < Grid::kRatios; ++k) {
    const double noise = s2 * Grid::ratios()[k];
    double product = 1;  // one logarithm for many factors
    for (std::size_t j = 0; j < d; ++j) {
      const double sum = noise + of.e[j];
      explained[k] += c2[j] / sum;
      product *= sum / noise;
      if (product > kLargestProduct) log_det[k] += std::log(product), product = 1;
    }
    log_det[k] += std::log(product);
  }
  const double log_s2 = std::log(s2);
  for (std::size_t w = 0; w < Grid::kWide; ++w)
    for (std::size_t k = 0; k < Grid::kNoises; ++k) {
      const double log_f = Grid::kStep * (static_cast<double>(k) - Grid::kReach);
      const std::size_t r = Grid::ratio(k, w);
      p_(w, k) = -0.5 * (std::max(0.0, of.residual - explained[r]) / (s2 * Grid::noises()[k]) +
                         of.rows * (log_s2 + log_f) + log_det[r]);
    }
  log_top_ = *std::max_element(p_.all().begin(), p_.all().end());
  for (double& v : p_.all()) v -= log_top_;
  exponentials(p_.all());
}

void AgentGrid::summarise(std::span<double> out) const {
  const MatrixSpan by(out.data(), 3, Grid::kNoises);
  std::copy(p_.row(0).begin(), p_.row(0).end(), by.row(0).begin());
  std::fill(out.begin() + Grid::kNoises, out.end(), 0.0);
  for (std::size_t w = 1; w < Grid::kWide; ++w)
    for (std::size_t k = 0; k < Grid::kNoises; ++k) {
      const double p = Grid::odds()[w - 1] * p_(w, k);
      by(1, k) += p;
      by(2, k) += p / Grid::wides()[w];
    }
}

AgentGrid::Weights AgentGrid::weights(const AgentLaw& law) const {
  Weights out{Vector(Grid::kRatios), Vector(Grid::kRatios)};
  double all = 0, usual = 0, noise = 0, inverse_noise = 0, inverse_wide = 0;
  for (std::size_t w = 0; w < Grid::kWide; ++w) {
    const Vector& prior = w == 0 ? law.usual : law.outlying;
    const double odds = w == 0 ? 1 : Grid::odds()[w - 1];
    double own = 0;
    for (std::size_t k = 0; k < Grid::kNoises; ++k) {
      const double weight = odds * p_(w, k) * prior[k], f = Grid::noises()[k];
      own += weight;
      noise += weight * f;
      inverse_noise += weight / f;
      out.ratio[Grid::ratio(k, w)] += weight;
      out.noise_ratio[Grid::ratio(k, w)] += weight * f;
    }
    if (w == 0) usual = own;
    all += own;
    inverse_wide += own / Grid::wides()[w];
  }
  divide(out.ratio, all);
  divide(out.noise_ratio, all);
  out.noise = noise / all;
  out.inverse_noise = inverse_noise / all;
  out.inverse_wide = inverse_wide / all;
  out.outlying = 1 - usual / all;
  return out;
}

namespace {

// Each agent's E 1/f and E 1/t under the law; `grids` are AgentGrid::summarise by agent.
LearntLaw under(const AgentLaw& law, const Matrix& grids) {
  LearntLaw learnt{law, Vector(grids.rows()), Vector(grids.rows())};
  Vector inverse = Grid::noises();
  for (double& f : inverse) f = 1 / f;
  for (std::size_t i = 0; i < grids.rows(); ++i) {
    const MatrixView grid(grids.row(i).data(), 3, Grid::kNoises);
    double all = 0, noise = 0;
    for (std::size_t k = 0; k < Grid::kNoises; ++k) {
      const double weight = law.usual[k] * grid(0, k) + law.outlying[k] * grid(1, k);
      all += weight;
      noise += weight * inverse[k];
    }
    learnt.noise[i] = all / noise;
    learnt.wide[i] = all / (dot(law.usual, grid.row(0)) + dot(law.outlying, grid.row(2)));
  }
  return learnt;
}

}  // namespace

LearntLaw learn_law(const Moments& m, const Decomposition& model, Team& team) {
  const MatrixView D = as_matrix(model.variances.D, m.d);
  const Matrix root = root_of(D, is_diagonal(D));
  Matrix grids(m.held(), 3 * Grid::kNoises);
  AgentSum sum_over("noise of the agents", kLaws, m.n, team);
  const double* const evidence = sum_over([&](std::size_t i, double* out) {
    const AgentGrid grid(Spectrum(m, root, model.centre, i), model.variances.s2);
    grid.summarise(grids.row(m.at(i)));
    add_evidence({grids.row(m.at(i)).data(), 3, Grid::kNoises}, grid.log_top(), out);
  });
  return under(mean_law({evidence, kLaws}), grids);
}

LearntLaw agents_under(const AgentLaw& law, const Moments& m, const Decomposition& model,
                       Team& team) {
  const MatrixView D = as_matrix(model.variances.D, m.d);
  const Matrix root = root_of(D, is_diagonal(D));
  Matrix grids(m.held(), 3 * Grid::kNoises);
  team.each(own_agents(m.n, team), [&](std::int64_t at, int) {
    const auto i = static_cast<std::size_t>(at);
    AgentGrid(Spectrum(m, root, model.centre, i), model.variances.s2).summarise(grids.row(m.at(i)));
  });
  return under(law, grids);
}

Moments divided(const Moments& m, const LearntLaw& by) {
  Moments out = m;
  for (std::size_t i = 0; i < m.held(); ++i) {
    const double f = by.noise[i];
    for (std::size_t j = 0; j < m.d * m.d; ++j) out.A[i * m.d * m.d + j] /= f;
    for (std::size_t j = 0; j < m.d; ++j) out.b[i * m.d + j] /= f;
    out.yy[i] /= f;
    out.wide[i] = by.wide[i];
  }
  return out;
}

}  // namespace affpcl
