#include "affpcl/mixed/evidence.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/evidence_batch.h"

namespace affpcl {

using namespace mixed;

namespace {

constexpr double kLeastInformation = 0.01;  // on a variance: it is hardly above ten
constexpr double kTiny = 1e-300;            // instead of dividing by 0, or of its logarithm
constexpr double kLargestRatio = 100;
constexpr double kRidge = 1e-12;  // of the mean diagonal of T, so that it has an inverse

double ratio(double up, double down) {
  if (!(up > 0)) return 0;
  // Without a degree of freedom left, `down` is a rounding error of 0: the step must stay finite.
  return std::min(kLargestRatio, std::sqrt(up / std::max(down, kTiny)));
}

constexpr double kNoPivot = 1e-12;  // of the largest diagonal entry of A
constexpr double kStillLeft = 1e4;  // times that: no rounding error
constexpr double kLowRank = 0.75;   // rows per coefficient, up to which the factor pays

// The agents of a leaf in lanes, from `first` on; where each is brought to fixed point, one agent.
struct BatchRun {
  std::size_t first = 0, count = 0;
  bool has(std::size_t agent) const { return agent >= first && agent < first + count; }
  void begin(std::size_t agent, const Moments& m, bool alone) {
    first = agent;
    count = alone ? 1 : std::min({kBatch - agent % kBatch, m.first + m.held() - agent});
  }
};
static_assert(kBatch == kAgentsALeaf);

// A worker's memory for agents of d coefficients, for every worker.
template <class Space>
std::vector<Space> of_workers(std::size_t d, int workers) {
  std::vector<Space> spaces;
  for (int w = 0; w < workers; ++w) spaces.emplace_back(d);
  return spaces;
}

}  // namespace

// Cholesky's factor with the largest pivots first, as far as A has rank.
Evidence::LowRank::LowRank(MatrixView A, std::span<const double> b, std::size_t rows) {
  const std::size_t d = A.rows();
  Vector left = diagonal_of(A);
  const double limit = kNoPivot * *std::max_element(left.begin(), left.end());
  Matrix columns(rows, d);  // of R
  for (std::size_t rank = 0; rank <= rows; ++rank) {
    const auto p =
        static_cast<std::size_t>(std::max_element(left.begin(), left.end()) - left.begin());
    if (rank == rows && left[p] > kStillLeft * limit) return;  // A has more rank than rows
    if (rank == rows || left[p] <= limit) {
      R = transpose({columns.data(), rank, d});
      return;
    }
    const double pivot = std::sqrt(left[p]);
    const std::span<double> r = columns.row(rank);
    std::copy_n(A.row(p).begin(), d, r.begin());
    double target = b[p];
    for (std::size_t l = 0; l < rank; ++l) {
      const double above = columns(l, p);
      for (std::size_t j = 0; j < d; ++j) r[j] -= above * columns(l, j);
      target -= above * z[l];
    }
    divide(r, pivot);
    z.push_back(target / pivot);
    for (std::size_t j = 0; j < d; ++j) left[j] -= r[j] * r[j];
    left[p] = 0;
  }
}

// An agent's part in pass 1: W, v and its terms of the evidence.
struct Evidence::First {
  explicit First(std::size_t d) : Z(d, d), K(d, d), Q(d, d), w(d), Zw(d) {
    if (d <= kBatchedColumns) lanes = BatchSpace(d);
  }
  Matrix Z, K, Q;
  Vector w, Zw;
  Cholesky C;
  BatchSpace lanes;  // those of the agents in `run`
  BatchRun run;
  double rest[kBatch][3];
};
void Evidence::add_first(std::size_t i, const Matrix& root, First& space, double* out) {
  const std::size_t d = m_.d, dd = d * d, at = m_.at(i);
  const MatrixSpan W(W_.data() + at * dd, d, d);
  const std::span v(v_.data() + at * d, d);
  double* const rest = out + dd + d;
  if (d <= kBatchedColumns) {
    if (!space.run.has(i)) {
      space.run.begin(i, m_, team_.sums() == Sums::kFixed);
      first_pass({d, space.run.count, m_.A.data() + at * dd, m_.b.data() + at * d,
                  m_.yy.data() + at, m_.rows.data() + at, m_.wide.data() + at, root.data(),
                  diagonal_, s2_, space.lanes.data(), W.data(), v.data(), space.rest});
    }
    add(space.rest[i - space.run.first], {rest, 3});
  } else {
    std::fill(W.all().begin(), W.all().end(), 0.0);
    if (low_rank_[at].R.rows() > 0) {
      add_few_rows(i, root, W, v, rest);
    } else {
      add_many_rows(i, root, space, W, v, rest);
    }
  }
  add(W.all(), {out, dd});
  add(v, {out + dd, d});
}

void Evidence::add_many_rows(std::size_t i, const Matrix& root, First& space, MatrixSpan W,
                             std::span<double> v, double* rest) const {
  const std::size_t d = m_.d;
  const auto A = A_of(m_, i);
  const auto b = b_of(m_, i);
  const double t = m_.wide[m_.at(i)], width = std::sqrt(t);  // its random effects are N(0, t D)
  Matrix &Z = space.Z, &K = space.K, &Q = space.Q;
  Vector &w = space.w, &Zw = space.Zw;
  Cholesky& C = space.C;
  if (diagonal_) {
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = 0; k < d; ++k) {
        Z(j, k) = root(k, k) * A(j, k);
        K(j, k) = Z(j, k) * root(j, j);
      }
    for (std::size_t j = 0; j < d; ++j) w[j] = root(j, j) * b[j];
  } else {
    multiply(A, transposed(root), Z);
    multiply(root, Z, K);
    multiply(root, b, w);
  }
  divide(K.all(), s2_ / t);
  add_to_diagonal(1, K);
  C.factor(K);
  divide(Z.all(), s2_ / width);
  C.forward(Z);
  divide(w, s2_ / width);
  C.forward(w);
  add_gram(-1, Z, W);
  for (std::size_t j = 0; j < d * d; ++j) W.all()[j] += A.all()[j] / s2_;
  multiply(Z, w, Zw);
  for (std::size_t j = 0; j < d; ++j) v[j] = b[j] / s2_ - Zw[j];
  rest[0] += m_.yy[m_.at(i)] / s2_ - squared_norm(w);
  rest[1] += m_.rows[m_.at(i)] * std::log(s2_) + C.log_determinant();
  // tr(A P)/s^2 = tr K (I + K)^-1 = d - |C^-1|^2
  std::fill(Q.all().begin(), Q.all().end(), 0.0);
  add_to_diagonal(1, Q);
  C.forward(Q);
  rest[2] += static_cast<double>(d) - squared_norm(Q.all());
}

// The same from A = R R' of low rank: W = B B'/s^2 with B = R C'^-1, C C' = I + R'D R/s^2.
void Evidence::add_few_rows(std::size_t i, const Matrix& root, MatrixSpan W, std::span<double> v,
                            double* rest) {
  const std::size_t d = m_.d, at = m_.at(i);
  const double t = m_.wide[at];
  LowRank& of = low_rank_[at];
  const std::size_t rank = of.R.cols();
  Matrix LR = of.R, K(rank, rank);
  if (diagonal_) {
    for (std::size_t j = 0; j < d; ++j)
      for (double& r : LR.row(j)) r *= root(j, j);
  } else {
    multiply(root, of.R, LR);
  }
  multiply(transposed(LR), LR, K);
  divide(K.all(), s2_ / t);
  add_to_diagonal(1, K);
  const Cholesky C(K);
  of.B = of.R;
  C.forward(of.B);
  Vector z = of.z;
  C.forward(z);
  add_gram(1 / s2_, of.B, W);
  multiply(of.B, z, v);
  divide(v, s2_);
  const double outside = std::max(0.0, m_.yy[at] - squared_norm(of.z));
  rest[0] += (outside + squared_norm(z)) / s2_;
  rest[1] += m_.rows[at] * std::log(s2_) + C.log_determinant();
  Matrix Q = Matrix::identity(rank);
  C.forward(Q);
  rest[2] += static_cast<double>(rank) - squared_norm(Q.all());
}

// An agent's part in pass 2.
struct Evidence::Second {
  explicit Second(std::size_t d) : HW(d, d), WHW(d, d), g(d), u(d), x(d), Ax(d), Wu(d) {
    if (d > kBatchedColumns) return;
    lanes = BatchSpace(d);
    all_WHW.resize(kBatch * d * d);
  }
  Matrix HW, WHW;
  Vector g, u, x, Ax, Wu;
  BatchSpace lanes;  // those of the agents in `run`
  BatchRun run;
  Vector all_WHW;
  double traces[kBatch];
};

// tr(H^-1 W); space.WHW becomes W H^-1 W, of a diagonal D its diagonal only.
double Evidence::centre_part(std::size_t i, Second& space) const {
  const std::size_t d = m_.d;
  if (d <= kBatchedColumns) {
    if (!space.run.has(i)) {
      space.run.begin(i, m_, team_.sums() == Sums::kFixed);
      second_pass({d, space.run.count, W_.data() + m_.at(i) * d * d, value_.centre_cov.data(),
                   diagonal_, space.lanes.data(), space.all_WHW.data(), space.traces});
    }
    const std::size_t lane = i - space.run.first;
    std::copy_n(space.all_WHW.begin() + static_cast<std::ptrdiff_t>(lane * d * d), d * d,
                space.WHW.data());
    return space.traces[lane];
  }
  const LowRank& of = low_rank_[m_.at(i)];
  const bool few = of.R.rows() > 0;
  const MatrixView W(W_.data() + m_.at(i) * d * d, d, d);
  // Both are X Y' with Y = W, or Y = B / s^2 for few rows.
  const MatrixView Y = few ? MatrixView(of.B) : W;
  Matrix low;
  double trace_HW = 0;
  if (few) {
    const Matrix HB = multiply(value_.centre_cov, of.B);
    Matrix E = multiply(transposed(of.B), HB);
    trace_HW = trace(E) / s2_;
    divide(E.all(), s2_ * s2_);
    low = multiply(of.B, E);
  } else {
    multiply(W, value_.centre_cov, space.HW);
    trace_HW = trace(space.HW);
  }
  const MatrixView X = few ? MatrixView(low) : MatrixView(space.HW);
  if (!diagonal_) {
    multiply(X, transposed(Y), space.WHW);
    return trace_HW;
  }
  for (std::size_t j = 0; j < d; ++j) space.WHW(j, j) = dot(X.row(j), Y.row(j));
  return trace_HW;
}

void Evidence::add_second(std::size_t i, const Vector& D_diagonal, Second& space,
                          double* out) const {
  const std::size_t d = m_.d, dd = d * d;
  const MatrixView W(W_.data() + m_.at(i) * dd, d, d);
  const MatrixSpan G(out, d, d), T(out + dd, d, d), cross(out + 2 * dd, d, d),
      reach(out + 3 * dd, d, d);
  double *const noise = out + 4 * dd, *const c = noise + d, *const rest = c + d;
  const double t = m_.wide[m_.at(i)];
  const Matrix& WHW = space.WHW;
  Vector &g = space.g, &u = space.u, &x = space.x, &Ax = space.Ax, &Wu = space.Wu;
  std::copy_n(v_.data() + m_.at(i) * d, d, g.begin());
  add_product(-1, transposed(W), value_.centre, g);
  if (diagonal_) {
    for (std::size_t j = 0; j < d; ++j) u[j] = t * D_diagonal[j] * g[j];
  } else {
    multiply(transposed(D_), g, u);
    for (double& v : u) v *= t;
  }
  for (std::size_t j = 0; j < d; ++j) x[j] = value_.centre[j] + u[j];
  multiply(transposed(A_of(m_, i)), x, Ax);
  const double rss = std::max(0.0, m_.yy[m_.at(i)] - 2 * dot(b_of(m_, i), x) + dot(x, Ax));
  if (restricted_) rest[1] += centre_part(i, space);  // else WHW stays 0
  if (diagonal_) {
    for (std::size_t j = 0; j < d; ++j) T(j, j) += t * (W(j, j) - WHW(j, j));
    for (std::size_t j = 0; j < d; ++j) rest[1] -= t * D_diagonal[j] * WHW(j, j);
  } else {
    for (std::size_t j = 0; j < dd; ++j) T.all()[j] += t * (W.all()[j] - WHW.all()[j]);
    rest[1] -= t * dot(D_.all(), WHW.all());
  }
  multiply(transposed(W), u, Wu);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t k = 0; k < d; ++k) {
      G(j, k) += t * (g[j] * g[k]);
      cross(j, k) += t * t * (g[k] * W(j, k) * g[j]);
      reach(j, k) += t * (W(j, k) * g[j]);
    }
    // q = X'V^-1 e, e = V^-1 r; and e'V^-1 e, which needs g'P g = g'u - u'W u.
    const double q = (g[j] - Wu[j]) / s2_;
    noise[j] += t * (g[j] * q);
    c[j] += q;
  }
  rest[0] += rss / (s2_ * s2_);
  rest[2] += (rss / (s2_ * s2_) - (dot(g, u) - dot(u, Wu)) / s2_) / s2_;
}

Evidence::Evidence(const Moments& m, double centre_precision, Team& team, bool restricted)
    : m_(m),
      precision_(centre_precision),
      restricted_(restricted),
      team_(team),
      W_(m.held() * m.d * m.d),
      v_(m.held() * m.d),
      low_rank_(m.held()),
      first_("likelihood of the variances", m.d * m.d + m.d + 3, m.n, team),
      second_("slopes of the likelihood", 4 * m.d * m.d + 2 * m.d + 4, m.n, team),
      squares_("random effects", m.d * m.d, m.n, team) {
  AgentSum sum("totals", m.d + 2, m.n, team);
  const double* const totals = sum([&](std::size_t i, double* out) {
    const auto A = A_of(m, i);
    for (std::size_t j = 0; j < m.d; ++j) out[j] += A(j, j);
    out[m.d] += m.rows[m.at(i)];
    out[m.d + 1] += m.yy[m.at(i)];
  });
  team.each(own_agents(m.n, team), [&](std::int64_t agent, int) {
    const auto i = static_cast<std::size_t>(agent);
    const double rows = m.rows[m.at(i)];
    if (m.d > kBatchedColumns && rows > 0 && rows <= kLowRank * static_cast<double>(m.d))
      low_rank_[m.at(i)] = LowRank(A_of(m, i), b_of(m, i), static_cast<std::size_t>(rows));
  });
  column_squares_.assign(totals, totals + m.d);
  N_ = totals[m.d];
  yy_ = totals[m.d + 1];
}

// Pass 1: H = sum W_i, h = sum v_i; then x_c and the evidence.
const Evidence::Value& Evidence::operator()(const Matrix& D, double s2, bool diagonal) {
  D_ = D, s2_ = s2, diagonal_ = diagonal;
  const Matrix root = root_of(D, diagonal);
  const std::size_t d = m_.d, dd = d * d;
  std::vector<First> spaces = of_workers<First>(d, team_.workers());
  const double* sums = first_([&](std::size_t i, int worker, double* out) {
    add_first(i, root, spaces[static_cast<std::size_t>(worker)], out);
  });
  Matrix H = MatrixView(sums, d, d);
  const std::span h(sums + dd, d);
  const double* rest = sums + dd + d;
  add_to_diagonal(precision_, H);
  const Ldlt solver(H);
  value_.centre_cov = solver.inverse();
  symmetrise(value_.centre_cov);
  value_.centre = solver.solve(h);
  trace_AP_ = rest[2];
  double log_det = 0;
  if (restricted_) {
    for (double v : solver.diagonal()) log_det += std::log(std::max(std::abs(v), kTiny));
    if (precision_ > 0) log_det -= static_cast<double>(d) * std::log(precision_);
  }
  value_.log_evidence = -0.5 * (N_ * std::log(2 * std::numbers::pi) + rest[1] + log_det + rest[0] -
                                dot(h, value_.centre));
  return value_;
}

// Pass 2.
EvidenceSlopes Evidence::slopes() {
  const std::size_t d = m_.d, dd = d * d;
  const Vector D_diagonal = diagonal_of(D_);
  std::vector<Second> spaces = of_workers<Second>(d, team_.workers());
  const double* sums = second_([&](std::size_t i, int worker, double* out) {
    add_second(i, D_diagonal, spaces[static_cast<std::size_t>(worker)], out);
  });
  EvidenceSlopes s;
  s.G = MatrixView(sums, d, d);
  s.T = MatrixView(sums + dd, d, d);
  s.cross = MatrixView(sums + 2 * dd, d, d);
  s.reach = MatrixView(sums + 3 * dd, d, d);
  s.noise.assign(sums + 4 * dd, sums + 4 * dd + d);
  s.c.assign(sums + 4 * dd + d, sums + 4 * dd + 2 * d);
  const double* rest = sums + 4 * dd + 2 * d;
  s.ee = rest[0];
  s.trace_P = (N_ - trace_AP_ - rest[1]) / s2_;
  s.eVe = rest[2];
  s.centre_cov = value_.centre_cov;
  return s;
}

Matrix Evidence::variance_cov(const VarianceGroups& groups) {
  Matrix S(groups.count, m_.d);
  for (std::size_t j = 0; j < m_.d; ++j) S(groups.of[j], j) = 1;
  const std::size_t dd = m_.d * m_.d;
  const MatrixView squares(squares_([&](std::size_t i, double* out) {
                             const double* const W = W_.data() + m_.at(i) * dd;
                             const double t = m_.wide[m_.at(i)];
                             for (std::size_t j = 0; j < dd; ++j) out[j] += t * t * (W[j] * W[j]);
                           }),
                           m_.d, m_.d);
  Matrix information = multiply(S, multiply(squares, transposed(S)));
  divide(information.all(), 2);
  add_to_diagonal(kLeastInformation, information);
  Vector scale = diagonal_of(information);
  for (double& v : scale) v = 1 / std::sqrt(v);
  rescale(information, scale);
  for (std::size_t j = 0; j < m_.d; ++j) S(groups.of[j], j) *= scale[groups.of[j]];
  return multiply(transposed(S), multiply(Ldlt(information).inverse(), S));
}

EvidenceSlopes::Information EvidenceSlopes::information(const VarianceGroups& groups) const {
  const std::size_t d = G.rows(), last = groups.count;  // s^2 comes after the variances
  Matrix R(last + 1, d);
  Information info{Vector(last + 1), Matrix(last + 1, last + 1)};
  auto& [score, AI] = info;
  for (std::size_t j = 0; j < d; ++j) {
    const std::size_t g = groups.of[j];
    score[g] += (G(j, j) - T(j, j)) / 2;
    add(reach.row(j), R.row(g));
    AI(last, g) += noise[j];
    for (std::size_t k = 0; k < d; ++k) AI(groups.of[k], g) += cross(k, j);
  }
  std::copy(c.begin(), c.end(), R.row(last).begin());
  score[last] = (ee - trace_P) / 2;
  AI(last, last) = eVe;
  for (std::size_t g = 0; g < last; ++g) AI(g, last) = AI(last, g);
  add_product(-1, R, multiply(centre_cov, transposed(R)), AI);
  divide(AI.all(), 2);
  return info;
}

double EvidenceSlopes::noise_ratio() const { return ratio(ee, trace_P); }

double EvidenceSlopes::group_ratio(const VarianceGroups& groups, std::size_t which) const {
  double up = 0, down = 0;
  for (std::size_t j = 0; j < groups.of.size(); ++j)
    if (groups.of[j] == which) up += G(j, j), down += T(j, j);
  return ratio(up, down);
}

// The prior exp(-agents (tr(mode^-1 D) + tr(mode D^-1)) / 2) adds to both matrices.
Matrix EvidenceSlopes::full_step(const Matrix& D, const Vector& mode, double agents) const {
  const std::size_t d = G.rows();
  Matrix invertible = T, reached = multiply(D, multiply(G, D));
  for (std::size_t j = 0; j < d && agents > 0; ++j) {
    invertible(j, j) += agents / mode[j];
    reached(j, j) += agents * mode[j];
  }
  add_to_diagonal(kRidge * trace(T) / static_cast<double>(d) + kTiny, invertible);
  const Cholesky C(invertible);
  const Matrix U = C.upper();
  Matrix inner = multiply(U, multiply(reached, transposed(U)));
  symmetrise(inner);
  const SymmetricEigen eigen = symmetric_eigen(inner);
  Matrix scaled = eigen.vectors;
  for (std::size_t k = 0; k < d; ++k)
    for (double& v : scaled.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
  Matrix root = multiply(transposed(eigen.vectors), scaled);
  C.backward(root);
  Matrix next = transpose(root);
  C.backward(next);
  symmetrise(next);
  return next;
}

}  // namespace affpcl
