#include "affpcl/mixed/levels.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/runtime/collectives.h"

namespace affpcl {

using namespace mixed;

namespace {

constexpr double kTiny = 1e-300;  // instead of the logarithm of 0

}  // namespace

LevelEvidence::LevelEvidence(const Moments& m, const LevelCells& cells,
                             std::vector<std::size_t> random, double centre_precision, Team& team,
                             bool restricted)
    : m_(m),
      cells_(cells),
      random_(std::move(random)),
      precision_(centre_precision),
      restricted_(restricted),
      team_(team),
      W_(m.held() * m.d * m.d),
      v_(m.held() * m.d),
      cell_(cells.count(), m.d + 2),
      reach_(cells.count(), random_.size()),
      first_(m.d * m.d + m.d + 2, team.workers()),
      system_(cells.levels, cells.nested) {
  AgentSum sum("totals", m.d + 2, m.n, team);
  const double* const totals = sum([&](std::size_t i, double* out) {
    const auto A = A_of(m, i);
    for (std::size_t j = 0; j < m.d; ++j) out[j] += A(j, j);
    out[m.d] += m.rows[m.at(i)];
    out[m.d + 1] += m.yy[m.at(i)];
  });
  column_squares_.assign(totals, totals + m.d);
  N_ = totals[m.d];
  yy_ = totals[m.d + 1];
}

// An agent's part in the evidence: u_i is eliminated, with K = I + L'A L / s^2 = C C', D = L L'.
struct LevelEvidence::First {
  First(std::size_t d, const Vector& D) : K(D.size(), D.size()), a(d, D.size()), r(D.size()) {
    for (double v : D) root.push_back(std::sqrt(v));
  }
  Vector root;
  Matrix K, a;  // a: rows are C^-1 L'A / s^2, one per column of A
  Vector r;     // C^-1 L'b / s^2
  Cholesky C;
};
void LevelEvidence::add_first(std::size_t i, First& space, double* out) {
  const std::size_t d = m_.d, dd = d * d, q = random_.size();
  const auto A = A_of(m_, i);
  const auto b = b_of(m_, i);
  const double s2 = at_.s2;
  auto& [root, K, a, r, C] = space;
  for (std::size_t k = 0; k < q; ++k) {
    const std::size_t j = random_[k];
    for (std::size_t l = 0; l < q; ++l) K(k, l) = root[k] * A(j, random_[l]) * root[l] / s2;
    K(k, k) += 1;
    for (std::size_t l = 0; l < d; ++l) a(l, k) = root[k] * A(j, l) / s2;
    r[k] = root[k] * b[j] / s2;
  }
  C.factor(K);
  C.forward(a);
  C.forward(r);
  const MatrixSpan W(W_.data() + m_.at(i) * dd, d, d);
  const std::span v(v_.data() + m_.at(i) * d, d);
  std::fill(W.all().begin(), W.all().end(), 0.0);
  add_gram(-1, a, W);
  for (std::size_t j = 0; j < dd; ++j) W.all()[j] += A.all()[j] / s2;
  for (std::size_t j = 0; j < d; ++j) v[j] = b[j] / s2 - dot(a.row(j), r);
  for (std::size_t c = cells_.first[m_.at(i)]; c < cells_.first[m_.at(i) + 1]; ++c) {
    const double* const x = cells_.X.data() + c * d;
    const std::span reach = reach_.row(c), to = cell_.row(c);
    for (std::size_t k = 0; k < q; ++k) reach[k] = root[k] * x[random_[k]] / s2;
    C.forward(reach);
    for (std::size_t j = 0; j < d; ++j) to[j] = x[j] / s2 - dot(a.row(j), reach);
    to[d] = cells_.y[c] / s2 - dot(reach, r);
    to[d + 1] = x[0] / s2 - squared_norm(reach);
  }
  add(W.all(), {out, dd});
  add(v, {out + dd, d});
  out[dd + d] += m_.yy[m_.at(i)] / s2 - squared_norm(r);
  out[dd + d + 1] += m_.rows[m_.at(i)] * std::log(s2) + C.log_determinant();
}

double LevelEvidence::operator()(const LevelVariances& at) {
  at_ = at;
  const double* const sums =
      first_(team_, agent_leaves(m_.n), [&](std::int64_t leaf, int, double* out) {
        First space(m_.d, at_.D);
        const Leaves run = agents_in({leaf, leaf + 1}, m_.n);
        for (std::int64_t i = run.first; i < run.last; ++i)
          add_first(static_cast<std::size_t>(i), space, out);
      });
  solve_levels(sums);
  return value_;
}

// The levels are eliminated next, which leaves x_c.
void LevelEvidence::solve_levels(const double* sums) {
  const std::size_t d = m_.d, G = cells_.levels;
  const double tau2 = at_.tau2;
  const Matrix totals = by_level(cell_);
  if (cells_.nested) {
    Vector E(G);
    for (std::size_t g = 0; g < G; ++g) E[g] = totals(g, d + 1);
    system_.set(std::move(E));
  } else {
    system_.set(team_, [&](Leaves run, MatrixSpan E) { add_to_rows(run, E); });
  }
  system_.factor(tau2);
  Matrix B(d + 1, G);  // B' and q
  for (std::size_t g = 0; g < G; ++g)
    for (std::size_t j = 0; j <= d; ++j) B(j, g) = totals(g, j);
  Matrix solved = B;
  system_.solve(solved);
  Matrix H = MatrixView(sums, d, d);
  Vector h(sums + d * d, sums + d * d + d);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) H(j, k) -= tau2 * dot(B.row(j), solved.row(k));
    h[j] -= tau2 * dot(B.row(j), solved.row(d));
  }
  symmetrise(H);
  add_to_diagonal(precision_, H);
  const Ldlt solver(H);
  centre_cov_ = solver.inverse();
  symmetrise(centre_cov_);
  centre_ = solver.solve(h);
  double log_det = system_.log_determinant();
  if (restricted_) {
    for (double v : solver.diagonal()) log_det += std::log(std::max(std::abs(v), kTiny));
    if (precision_ > 0) log_det -= static_cast<double>(d) * std::log(precision_);
  }
  const double* const rest = sums + d * d + d;
  const double quadratic = rest[0] - tau2 * dot(B.row(d), solved.row(d)) - dot(h, centre_);
  value_ = -0.5 * (N_ * std::log(2 * std::numbers::pi) + rest[1] + log_det + quadratic);
  g_.assign(solved.row(d).begin(), solved.row(d).end());
  U_ = Matrix(G, d);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t g = 0; g < G; ++g) {
      U_(g, j) = solved(j, g);
      g_[g] -= solved(j, g) * centre_[j];
    }
  w_ = g_;
  for (double& w : w_) w *= tau2;
}

// Rows [run) of E, agent after agent.
void LevelEvidence::add_to_rows(Leaves run, MatrixSpan E) const {
  for (std::size_t i = 0; i < m_.held(); ++i) {
    const std::size_t first = cells_.first[i], last = cells_.first[i + 1];
    for (std::size_t c = first; c < last; ++c) {
      const std::size_t g = cells_.level[c];
      if (g < static_cast<std::size_t>(run.first) || g >= static_cast<std::size_t>(run.last))
        continue;
      for (std::size_t e = first; e < last; ++e)
        E(g, cells_.level[e]) -= dot(reach_.row(c), reach_.row(e));
      E(g, g) += cells_.X[c * m_.d] / at_.s2;
    }
  }
}

Matrix LevelEvidence::by_level(const Matrix& by_cell) const {
  const std::size_t width = by_cell.cols();
  Matrix sums(cells_.levels, width);
  if (team_.processes().count() == 1) {
    for (std::size_t c = 0; c < cells_.count(); ++c) add(by_cell.row(c), sums.row(cells_.level[c]));
    return sums;
  }
  // Each rank adds the cells of all ranks, in the order of agents: the bits of one process.
  std::vector<double> mine;
  for (std::size_t c = 0; c < cells_.count(); ++c) {
    mine.push_back(static_cast<double>(cells_.level[c]));
    mine.insert(mine.end(), by_cell.row(c).begin(), by_cell.row(c).end());
  }
  const std::vector<double> all = all_gather_lists(team_.processes(), mine);
  for (std::size_t at = 0; at < all.size(); at += width + 1)
    add({all.data() + at + 1, width}, sums.row(static_cast<std::size_t>(all[at])));
  return sums;
}

double LevelEvidence::level_cov(std::size_t g, std::size_t h) const {
  const double tau2 = at_.tau2;
  return tau2 * (system_.inverse(g, h) + tau2 * dot(U_.row(g), UH_.row(h)));
}

void LevelEvidence::centre_level_cov(std::size_t g, std::span<double> out) const {
  for (std::size_t j = 0; j < m_.d; ++j) out[j] = -at_.tau2 * UH_(g, j);
}

}  // namespace affpcl
