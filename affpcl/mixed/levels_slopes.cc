// The gradient and the average information of the evidence with a second factor.
#include <algorithm>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/levels.h"

namespace affpcl {

using namespace mixed;

namespace {

// Where the numbers of an agent's part begin.
struct Parts {
  Parts(std::size_t p, std::size_t d) : up(0), down(p), X(2 * p), F(X + p * d), size(F + p * p) {}
  std::size_t up, down;  // [p] each
  std::size_t X;         // [p][d]: X'V1^-1 f
  std::size_t F;         // [p][p]: f'V1^-1 f
  std::size_t size;
};

}  // namespace

// What one agent adds. The directions are: the groups of random coefficients, the levels, the
// noise. A direction has f = (dV / dvariance) V^-1 (y - X x_c); the average information is
// f'P f / 2. V1 is V without the levels.
struct LevelEvidence::Second {
  Second(const LevelEffects& effects, std::size_t d)
      : parts(effects.groups + 2, d),
        delta(effects.groups, d),
        Wd(effects.groups, d),
        g(d),
        u(d),
        x(d),
        Wu(d),
        Bg(d),
        reach_w(effects.random.size()),
        reach_g(effects.random.size()) {}
  Parts parts;
  Matrix delta, Wd;         // by group: g in its coordinates, and W times that
  Vector g, u, x;           // X'V^-1 (y - X x_c), D g, x_c + u
  Vector Wu, Bg;            // W u, and B' times the g of the levels
  Vector reach_w, reach_g;  // of E w and E g
};

Matrix LevelEvidence::agent_information(std::size_t i) const {
  const std::size_t d = m_.d, first = cells_.first[m_.at(i)], last = cells_.first[m_.at(i) + 1];
  Matrix information = MatrixView(W_.data() + m_.at(i) * d * d, d, d);
  Vector solved(d);
  for (std::size_t c = first; c < last; ++c) {
    std::fill(solved.begin(), solved.end(), 0.0);
    for (std::size_t e = first; e < last; ++e) {
      const double inverse = system_.inverse(cells_.level[c], cells_.level[e]);
      for (std::size_t j = 0; j < d; ++j) solved[j] += inverse * cell_(e, j);
    }
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) information(j, k) -= at_.tau2 * cell_(c, j) * solved[k];
  }
  symmetrise(information);
  return information;
}

void LevelEvidence::begin_second(std::size_t i, const LevelEffects& effects, Second& s) const {
  const std::size_t d = m_.d, at = m_.at(i), q = random_.size();
  const MatrixView W(W_.data() + at * d * d, d, d);
  std::copy_n(v_.data() + at * d, d, s.g.begin());
  add_product(-1, transposed(W), centre_, s.g);
  for (Vector* v : {&s.Bg, &s.u, &s.reach_w, &s.reach_g, &s.delta.all()})
    std::fill(v->begin(), v->end(), 0.0);
  for (std::size_t c = cells_.first[at]; c < cells_.first[at + 1]; ++c) {
    const double w = w_[cells_.level[c]], g = g_[cells_.level[c]];
    for (std::size_t j = 0; j < d; ++j) s.g[j] -= cell_(c, j) * w, s.Bg[j] += cell_(c, j) * g;
    for (std::size_t k = 0; k < q; ++k)
      s.reach_w[k] += reach_(c, k) * w, s.reach_g[k] += reach_(c, k) * g;
  }
  for (std::size_t k = 0; k < q; ++k) {
    s.u[random_[k]] = at_.D[k] * s.g[random_[k]];
    s.delta(effects.group[k], random_[k]) = s.g[random_[k]];
  }
  multiply(s.delta, W, s.Wd);
  multiply(W, s.u, s.Wu);
  for (std::size_t j = 0; j < d; ++j) s.x[j] = centre_[j] + s.u[j];
}

// Of D: g^2 and the diagonal of T = X_i'P X_i; of s^2 what T has to do with tr P.
void LevelEvidence::add_gradient(std::size_t i, const LevelEffects& effects, const Second& s,
                                 double* out) const {
  const std::size_t d = m_.d, at = m_.at(i), noise = effects.groups + 1;
  const Matrix information = agent_information(i);
  Matrix seen = MatrixView(W_.data() + at * d * d, d, d);  // X_i'V^-1 X
  for (std::size_t c = cells_.first[at]; c < cells_.first[at + 1]; ++c)
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k)
        seen(j, k) -= at_.tau2 * cell_(c, j) * U_(cells_.level[c], k);
  const Matrix seen_cov = multiply(seen, centre_cov_);
  for (std::size_t k = 0; k < random_.size(); ++k) {
    const std::size_t j = random_[k];
    double T = information(j, j);
    if (restricted_) T -= dot(seen_cov.row(j), seen.row(j));
    out[s.parts.up + effects.group[k]] += s.g[j] * s.g[j];
    out[s.parts.down + effects.group[k]] += T;
    out[s.parts.down + noise] -= at_.D[k] * T;
  }
}

void LevelEvidence::add_information(std::size_t i, const LevelEffects& effects, const Second& s,
                                    Matrix& by_cell, double* out) const {
  const std::size_t d = m_.d, at = m_.at(i), groups = effects.groups, p = groups + 2;
  const std::size_t levels = groups, noise = groups + 1;
  const double s2 = at_.s2;
  const MatrixSpan RX(out + s.parts.X, p, d), F(out + s.parts.F, p, p);
  double rss = m_.yy[at] - 2 * dot(b_of(m_, i), s.x) + dot(s.x, multiply(A_of(m_, i), s.x));
  for (std::size_t c = cells_.first[at]; c < cells_.first[at + 1]; ++c) {
    const double w = w_[cells_.level[c]], g = g_[cells_.level[c]];
    const std::span<const double> sums(cells_.X.data() + c * d, d), B = cell_.row(c).first(d);
    const std::span<double> to = by_cell.row(c);
    rss += w * (2 * dot(sums, s.x) - 2 * cells_.y[c] + sums[0] * w);
    for (std::size_t k = 0; k < groups; ++k) to[k] = dot(B, s.delta.row(k));
    const double Ew = sums[0] / s2 * w - dot(reach_.row(c), s.reach_w);
    to[levels] = sums[0] / s2 * g - dot(reach_.row(c), s.reach_g);
    to[noise] = (cell_(c, d) - dot(B, centre_) - Ew - dot(B, s.u)) / s2;
    F(levels, levels) += g * to[levels];
    F(levels, noise) += g * to[noise];
  }
  rss = std::max(0.0, rss);
  out[s.parts.up + noise] += rss / (s2 * s2);
  for (std::size_t k = 0; k < groups; ++k) {
    for (std::size_t l = 0; l < groups; ++l) F(k, l) += dot(s.delta.row(k), s.Wd.row(l));
    F(k, levels) += dot(s.delta.row(k), s.Bg);
    for (std::size_t j = 0; j < d; ++j) F(k, noise) += s.delta(k, j) * (s.g[j] - s.Wu[j]) / s2;
    add(s.Wd.row(k), RX.row(k));
  }
  add(s.Bg, RX.row(levels));
  for (std::size_t j = 0; j < d; ++j) RX(noise, j) += (s.g[j] - s.Wu[j]) / s2;
  F(noise, noise) += (rss / (s2 * s2) - (dot(s.g, s.u) - dot(s.u, s.Wu)) / s2) / s2;
}

LevelEvidence::Slopes LevelEvidence::slopes(const LevelEffects& effects) {
  const std::size_t d = m_.d, p = effects.groups + 2, G = cells_.levels;
  const std::size_t levels = effects.groups, noise = effects.groups + 1;
  const Parts parts(p, d);
  const double tau2 = at_.tau2;
  system_.invert(team_);
  UH_ = multiply(U_, centre_cov_);
  Matrix by_cell(cells_.count(), p);
  TeamSum second(parts.size, team_.workers());
  const double* const sums =
      second(team_, agent_leaves(m_.n), [&](std::int64_t leaf, int, double* out) {
        Second space(effects, d);
        const Leaves run = agents_in({leaf, leaf + 1}, m_.n);
        for (std::int64_t i = run.first; i < run.last; ++i) {
          begin_second(static_cast<std::size_t>(i), effects, space);
          add_gradient(static_cast<std::size_t>(i), effects, space, out);
          add_information(static_cast<std::size_t>(i), effects, space, by_cell, out);
        }
      });
  Slopes s{Vector(sums, sums + p), Vector(sums + p, sums + 2 * p), Matrix(p, p)};
  information_.resize(G);
  double all_T = 0;
  for (std::size_t g = 0; g < G; ++g) {
    information_[g] = system_.information(g);
    s.up[levels] += g_[g] * g_[g];
    all_T += restricted_ ? information_[g] - dot(U_.row(g), UH_.row(g)) : information_[g];
  }
  s.down[levels] = all_T;
  s.down[noise] +=
      (restricted_ ? N_ - static_cast<double>(d) + precision_ * trace(centre_cov_) : N_) -
      tau2 * all_T;
  s.down[noise] /= at_.s2;

  const Matrix Rq = transpose(by_level(by_cell));  // [p][levels]: Q'V1^-1 f
  Matrix solved = Rq;
  system_.solve(solved);
  Matrix RX = MatrixView(sums + parts.X, p, d);
  add_product(-tau2, Rq, U_, RX);
  const Matrix RXH = multiply(RX, centre_cov_);
  const MatrixView F(sums + parts.F, p, p);
  for (std::size_t k = 0; k < p; ++k)
    for (std::size_t l = k; l < p; ++l)
      s.information(k, l) = s.information(l, k) =
          (F(k, l) - tau2 * dot(Rq.row(k), solved.row(l)) - dot(RXH.row(k), RX.row(l))) / 2;
  return s;
}

}  // namespace affpcl
