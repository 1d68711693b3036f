#include "affpcl/mixed/decomposition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/math/dense.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

constexpr double kSmallestNoise = 1e-10;    // s^2, the target having variance 1
constexpr double kLeastInformation = 0.01;  // about a variance: it is hardly above ten
constexpr int kFullTrial = 6;               // steps after which a hopeless full D is given up

MatrixView A_of(const Moments& m, std::size_t i) {
  return {m.A.data() + m.at(i) * m.d * m.d, m.d, m.d};
}
std::span<const double> b_of(const Moments& m, std::size_t i) {
  return {m.b.data() + m.at(i) * m.d, m.d};
}

Vector diagonal_of(MatrixView A) {
  Vector diagonal(A.rows());
  for (std::size_t j = 0; j < diagonal.size(); ++j) diagonal[j] = A(j, j);
  return diagonal;
}
void add_to_diagonal(double number, MatrixSpan A) {
  for (std::size_t j = 0; j < A.rows(); ++j) A(j, j) += number;
}
bool is_diagonal(MatrixView A) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k)
      if (j != k && A(j, k) != 0) return false;
  return true;
}
void add(std::span<const double> x, std::span<double> to) {
  for (std::size_t j = 0; j < to.size(); ++j) to[j] += x[j];
}
void divide(std::span<double> x, double by) {
  for (double& v : x) v /= by;
}
// diag(scale) A diag(scale)
void rescale(MatrixSpan A, const Vector& scale) {
  for (std::size_t j = 0; j < A.rows(); ++j)
    for (std::size_t k = 0; k < A.cols(); ++k) A(j, k) = scale[k] * A(j, k) * scale[j];
}

// L' with D = L L'; zero rows where D has no spread.
Matrix root_of(MatrixView D, bool diagonal) {
  if (!diagonal) return semidefinite_root(D);
  Matrix root(D.rows(), D.cols());
  for (std::size_t j = 0; j < D.rows(); ++j) root(j, j) = std::sqrt(std::max(D(j, j), 0.0));
  return root;
}

// The evidence at one (D, s^2), and what the next step needs: sums over agents, in two passes.
// Names are those of docs/explain/fit.md.
class Sums {
 public:
  Sums(const Moments& m, double centre_precision, Team& team)
      : m_(m),
        precision_(centre_precision),
        team_(team),
        leaves_(agent_leaves(m.n)),
        W_(m.held() * m.d * m.d),
        v_(m.held() * m.d),
        first_(m.d * m.d + m.d + 3, team.workers()),
        second_(4 * m.d * m.d + 2 * m.d + 4, team.workers()),
        squares_(m.d * m.d, m.n, team) {
    AgentSum sum(m.d + 2, m.n, team);
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

  double rows() const { return N_; }
  double yy() const { return yy_; }
  const Vector& column_squares() const { return column_squares_; }

  // Pass 1: H = sum W_i, h = sum v_i; then x_c and the evidence.
  void centre(const Matrix& D, double s2, bool diagonal) {
    D_ = D, s2_ = s2, diagonal_ = diagonal;
    const Matrix root = root_of(D, diagonal);
    const std::size_t d = m_.d, dd = d * d;
    const double* sums = first_(team_, leaves_, [&](std::int64_t leaf, int, double* out) {
      First space(d);
      each(leaf, [&](std::size_t i) { add_first(i, root, space, out); });
    });
    Matrix H = MatrixView(sums, d, d);
    const std::span h(sums + dd, d);
    const double* rest = sums + dd + d;
    add_to_diagonal(precision_, H);
    const Ldlt solver(H);
    H_inverse_ = solver.inverse();
    symmetrise(H_inverse_);
    x_ = solver.solve(h);
    trace_AP_ = rest[2];
    double log_det = 0;
    for (double v : solver.diagonal()) log_det += std::log(std::max(std::abs(v), 1e-300));
    if (precision_ > 0) log_det -= static_cast<double>(d) * std::log(precision_);
    evidence_ =
        -0.5 * (N_ * std::log(2 * std::numbers::pi) + rest[1] + log_det + rest[0] - dot(h, x_));
  }

  // Pass 2: what the evidence does when D and s^2 change.
  void slopes() {
    const std::size_t d = m_.d, dd = d * d;
    const Vector D_diagonal = diagonal_of(D_);
    const double* sums = second_(team_, leaves_, [&](std::int64_t leaf, int, double* out) {
      Second space(d);
      each(leaf, [&](std::size_t i) { add_second(i, D_diagonal, space, out); });
    });
    G_ = MatrixView(sums, d, d);
    T_ = MatrixView(sums + dd, d, d);
    cross_ = MatrixView(sums + 2 * dd, d, d);
    reach_ = MatrixView(sums + 3 * dd, d, d);
    noise_.assign(sums + 4 * dd, sums + 4 * dd + d);
    c_.assign(sums + 4 * dd + d, sums + 4 * dd + 2 * d);
    const double* rest = sums + 4 * dd + 2 * d;
    ee_ = rest[0];
    trace_P_ = (N_ - trace_AP_ - rest[1]) / s2_;
    eVe_ = rest[2];
  }

  double evidence() const { return evidence_; }
  const Vector& x() const { return x_; }
  const Matrix& H_inverse() const { return H_inverse_; }

  // Every group of coordinates has one variance (one group: scalar; d groups: diagonal). The
  // evidence's slope and average information in (variances, s^2).
  void information(const std::vector<int>& group, int groups, Vector& score, Matrix& AI) const {
    const auto last = static_cast<std::size_t>(groups);
    Matrix R(last + 1, m_.d);
    score.assign(last + 1, 0.0);
    AI = Matrix(last + 1, last + 1);
    for (std::size_t j = 0; j < m_.d; ++j) {
      const auto g = static_cast<std::size_t>(group[j]);
      score[g] += (G_(j, j) - T_(j, j)) / 2;
      add(reach_.row(j), R.row(g));
      AI(last, g) += noise_[j];
      for (std::size_t k = 0; k < m_.d; ++k)
        AI(static_cast<std::size_t>(group[k]), g) += cross_(k, j);
    }
    std::copy(c_.begin(), c_.end(), R.row(last).begin());
    score[last] = (ee_ - trace_P_) / 2;
    AI(last, last) = eVe_;
    for (std::size_t g = 0; g < last; ++g) AI(g, last) = AI(last, g);
    add_product(-1, R, multiply(H_inverse_, transposed(R)), AI);
    divide(AI.all(), 2);
  }

  // Inverse of the expected information about the groups' variances, for every pair of coordinates.
  Matrix spread_cov(const std::vector<int>& group, int groups) {
    Matrix S(static_cast<std::size_t>(groups), m_.d);
    for (std::size_t j = 0; j < m_.d; ++j) S(static_cast<std::size_t>(group[j]), j) = 1;
    const std::size_t dd = m_.d * m_.d;
    const MatrixView squares(squares_([&](std::size_t i, double* out) {
                               const double* const W = W_.data() + m_.at(i) * dd;
                               for (std::size_t j = 0; j < dd; ++j) out[j] += W[j] * W[j];
                             }),
                             m_.d, m_.d);
    Matrix information = multiply(S, multiply(squares, transposed(S)));
    divide(information.all(), 2);
    add_to_diagonal(kLeastInformation, information);
    Vector scale = diagonal_of(information);
    for (double& v : scale) v = 1 / std::sqrt(v);
    rescale(information, scale);
    for (std::size_t j = 0; j < m_.d; ++j) {
      const auto g = static_cast<std::size_t>(group[j]);
      S(g, j) *= scale[g];
    }
    return multiply(transposed(S), multiply(Ldlt(information).inverse(), S));
  }

  // The ratios of a step that never lowers the evidence: theta <- theta sqrt(slope up / slope
  // down).
  double noise_ratio() const { return ratio(ee_, trace_P_); }
  double group_ratio(const std::vector<int>& group, int which) const {
    double up = 0, down = 0;
    for (std::size_t j = 0; j < m_.d; ++j)
      if (group[j] == which) up += G_(j, j), down += T_(j, j);
    return ratio(up, down);
  }
  // The same for a full D: the geometric mean of T^-1 and D G D.
  Matrix full_step() const {
    Matrix T = T_;
    add_to_diagonal(1e-12 * trace(T) / static_cast<double>(m_.d) + 1e-300, T);
    const Cholesky C(T);
    const Matrix U = C.upper();
    Matrix inner = multiply(U, multiply(D_, multiply(G_, multiply(D_, transposed(U)))));
    symmetrise(inner);
    const SymmetricEigen eigen = symmetric_eigen(inner);
    Matrix scaled = eigen.vectors;
    for (std::size_t k = 0; k < m_.d; ++k)
      for (double& v : scaled.row(k)) v *= std::sqrt(std::max(eigen.values[k], 0.0));
    Matrix root = multiply(transposed(eigen.vectors), scaled);
    C.backward(root);
    Matrix D = transpose(root);
    C.backward(D);
    symmetrise(D);
    return D;
  }

 private:
  struct First {  // an agent's part in pass 1, on its way
    explicit First(std::size_t d) : Z(d, d), K(d, d), Q(d, d), w(d), Zw(d) {}
    Matrix Z, K, Q;
    Vector w, Zw;
    Cholesky C;
  };
  void add_first(std::size_t i, const Matrix& root, First& space, double* out) {
    const std::size_t d = m_.d, dd = d * d;
    const auto A = A_of(m_, i);
    const auto b = b_of(m_, i);
    auto& [Z, K, Q, w, Zw, C] = space;
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
    divide(K.all(), s2_);
    add_to_diagonal(1, K);
    C.factor(K);
    divide(Z.all(), s2_);
    C.forward(Z);
    divide(w, s2_);
    C.forward(w);
    const MatrixSpan W(W_.data() + m_.at(i) * dd, d, d);
    std::fill(W.all().begin(), W.all().end(), 0.0);
    add_gram(-1, Z, W);
    for (std::size_t j = 0; j < dd; ++j) W.all()[j] += A.all()[j] / s2_;
    double* const v = v_.data() + m_.at(i) * d;
    multiply(Z, w, Zw);
    for (std::size_t j = 0; j < d; ++j) v[j] = b[j] / s2_ - Zw[j];
    add(W.all(), {out, dd});
    add({v, d}, {out + dd, d});
    double* const rest = out + dd + d;
    rest[0] += m_.yy[m_.at(i)] / s2_ - squared_norm(w);
    rest[1] += m_.rows[m_.at(i)] * std::log(s2_) + C.log_determinant();
    // tr(A P)/s^2 = tr K (I + K)^-1 = d - |C^-1|^2
    std::fill(Q.all().begin(), Q.all().end(), 0.0);
    add_to_diagonal(1, Q);
    C.forward(Q);
    rest[2] += static_cast<double>(d) - squared_norm(Q.all());
  }

  struct Second {
    explicit Second(std::size_t d) : HW(d, d), WD(d, d), g(d), u(d), x(d), Ax(d), Wu(d), WHW(d) {}
    Matrix HW, WD;
    Vector g, u, x, Ax, Wu, WHW;
  };
  void add_second(std::size_t i, const Vector& D_diagonal, Second& space, double* out) const {
    const std::size_t d = m_.d, dd = d * d;
    const MatrixView W(W_.data() + m_.at(i) * dd, d, d);
    const MatrixSpan G(out, d, d), T(out + dd, d, d), cross(out + 2 * dd, d, d),
        reach(out + 3 * dd, d, d);
    double *const noise = out + 4 * dd, *const c = noise + d, *const rest = c + d;
    auto& [HW, WD, g, u, x, Ax, Wu, WHW] = space;
    std::copy_n(v_.data() + m_.at(i) * d, d, g.begin());
    add_product(-1, transposed(W), x_, g);
    if (diagonal_) {
      for (std::size_t j = 0; j < d; ++j) u[j] = D_diagonal[j] * g[j];
    } else {
      multiply(transposed(D_), g, u);
    }
    for (std::size_t j = 0; j < d; ++j) x[j] = x_[j] + u[j];
    multiply(transposed(A_of(m_, i)), x, Ax);
    const double rss = std::max(0.0, m_.yy[m_.at(i)] - 2 * dot(b_of(m_, i), x) + dot(x, Ax));
    multiply(H_inverse_, W, HW);
    if (diagonal_) {
      column_dots(HW, W, WHW);
      for (std::size_t j = 0; j < d; ++j) T(j, j) += W(j, j) - WHW[j];
      rest[1] += trace(HW) - dot(D_diagonal, WHW);
    } else {
      add(W.all(), T.all());
      add_product(-1, W, HW, T);
      multiply(W, D_, WD);
      rest[1] += trace(HW) - dot(HW.all(), WD.all());
    }
    multiply(transposed(W), u, Wu);
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t k = 0; k < d; ++k) {
        G(j, k) += g[j] * g[k];
        cross(j, k) += g[k] * W(j, k) * g[j];
        reach(j, k) += W(j, k) * g[j];
      }
      // q = X'V^-1 e, e = V^-1 r; and e'V^-1 e, which needs g'P g = g'u - u'W u.
      const double q = (g[j] - Wu[j]) / s2_;
      noise[j] += g[j] * q;
      c[j] += q;
    }
    rest[0] += rss / (s2_ * s2_);
    rest[2] += (rss / (s2_ * s2_) - (dot(g, u) - dot(u, Wu)) / s2_) / s2_;
  }

  static double ratio(double up, double down) {
    if (!(up > 0)) return 0;
    // Without a degree of freedom left, `down` is a rounding error of 0: then not to infinity at
    // once.
    return std::min(100.0, std::sqrt(up / std::max(down, 1e-300)));
  }
  template <class F>
  void each(std::int64_t leaf, F f) const {
    const Leaves run = agents_in({leaf, leaf + 1}, m_.n);
    for (std::int64_t i = run.first; i < run.last; ++i) f(static_cast<std::size_t>(i));
  }

  const Moments& m_;
  double precision_;
  Team& team_;
  std::int64_t leaves_;
  double N_ = 0, yy_ = 0;
  Vector column_squares_;      // diagonal of X'X, of all agents
  std::vector<double> W_, v_;  // X'V^-1 X and X'V^-1 y of every agent held
  TeamSum first_, second_;
  AgentSum squares_;
  bool diagonal_ = true;
  Matrix D_, H_inverse_;
  Vector x_;
  double s2_ = 1, evidence_ = 0, trace_AP_ = 0;
  Matrix G_, T_, cross_, reach_;  // reach_: row j is that of coordinate j
  Vector noise_, c_;
  double ee_ = 0, trace_P_ = 0, eVe_ = 0;
};

MatrixView as_matrix(const std::vector<double>& D, std::size_t d) { return {D.data(), d, d}; }

Decomposition outcome(const Sums& sums, Covariance form, const Matrix& D, double s2,
                      double numbers, const Moments& m) {
  Decomposition r;
  r.covariance = form;
  r.variances.D = D.all();
  r.variances.s2 = s2;
  r.centre = sums.x();
  r.spread_cov.assign(m.d * m.d, 0.0);
  r.centre_cov = sums.H_inverse().all();
  r.log_evidence = sums.evidence();
  r.bic = -2 * r.log_evidence + numbers * std::log(static_cast<double>(m.n));
  return r;
}

// AI^-1 score in the free coordinates.
Vector newton_step(const Vector& score, const Matrix& AI, const std::vector<std::size_t>& free) {
  Matrix sub(free.size(), free.size());
  for (std::size_t a = 0; a < free.size(); ++a)
    for (std::size_t b = 0; b < free.size(); ++b) sub(a, b) = AI(free[a], free[b]);
  Vector scale = diagonal_of(sub), slope(free.size());
  for (std::size_t a = 0; a < free.size(); ++a) {
    scale[a] = 1 / std::sqrt(std::max(std::abs(scale[a]), 1e-300));
    slope[a] = scale[a] * score[free[a]];
  }
  rescale(sub, scale);
  add_to_diagonal(1e-9, sub);
  Vector step = Ldlt(sub).solve(slope);
  for (std::size_t a = 0; a < free.size(); ++a) step[a] *= scale[a];
  return step;
}

// One variance for each group of coordinates: Newton steps with the average information, kept to
// variances >= 0, and where these do not raise the evidence the step that always does.
Decomposition fit_groups(const Moments& m, const std::vector<int>& group, int groups,
                         Covariance form, const DecompositionOptions& o, Vector theta, double s2,
                         Sums& sums) {
  const auto D_of = [&](const Vector& t) {
    Matrix D(m.d, m.d);
    for (std::size_t j = 0; j < m.d; ++j) D(j, j) = t[static_cast<std::size_t>(group[j])];
    return D;
  };
  // A variance comes back from 0 with what an agent can just see.
  const auto last = static_cast<std::size_t>(groups);  // s^2 comes after the variances
  Vector least(last);
  for (std::size_t j = 0; j < m.d; ++j)
    least[static_cast<std::size_t>(group[j])] += sums.column_squares()[j];
  for (double& v : least) v = 1 / (v + 1e-12) * (1e-3 * static_cast<double>(m.n));

  sums.centre(D_of(theta), s2, true);
  double evidence = sums.evidence();
  Vector score;
  Matrix AI;
  bool converged = false;
  int iteration = 0, still = 0;
  for (; iteration < o.iterations && !converged; ++iteration) {
    sums.slopes();
    sums.information(group, groups, score, AI);
    std::vector<std::size_t> free;
    for (std::size_t g = 0; g < last; ++g)
      if (theta[g] > 0 || score[g] > 0) free.push_back(g);
    if (s2 > kSmallestNoise || score[last] > 0) free.push_back(last);
    const Vector step = newton_step(score, AI, free);

    const Vector old_theta = theta;
    const double old_s2 = s2, old_evidence = evidence;
    const double slack = 1e-13 * std::abs(old_evidence);
    Vector ups;
    for (int g = 0; g < groups; ++g) ups.push_back(sums.group_ratio(group, g));
    const double noise_up = sums.noise_ratio();
    bool taken = false;
    const bool finite =
        std::all_of(step.begin(), step.end(), [](double v) { return std::isfinite(v); });
    for (double share = 1; share > 0.01 && !taken && finite; share /= 4) {
      theta = old_theta;
      s2 = old_s2;
      for (std::size_t a = 0; a < free.size(); ++a) {
        const std::size_t g = free[a];
        const double move = share * step[a];
        if (g == last) {
          s2 = std::max(kSmallestNoise, std::clamp(old_s2 + move, old_s2 / 5, old_s2 * 5));
        } else {
          // To 0 only from where it hardly matters: far jumps end in the wrong maximum.
          const double floor = old_theta[g] > least[g] * old_s2 ? old_theta[g] / 10 : 0.0;
          theta[g] = std::clamp(old_theta[g] + move, floor,
                                10 * std::max(old_theta[g], least[g] * old_s2));
        }
      }
      sums.centre(D_of(theta), s2, true);
      evidence = sums.evidence();
      taken = evidence >= old_evidence - slack;
    }
    if (!taken) {
      for (std::size_t g = 0; g < last; ++g) theta[g] = old_theta[g] * ups[g];
      s2 = std::max(kSmallestNoise, old_s2 * noise_up);
      sums.centre(D_of(theta), s2, true);
      evidence = sums.evidence();
    }
    double change = std::abs(s2 - old_s2) / s2;
    for (std::size_t g = 0; g < last; ++g) {
      const double size = std::max(theta[g], old_theta[g]);
      if (size > 1e-9 * least[g] * s2)
        change = std::max(change, std::abs(theta[g] - old_theta[g]) / size);
    }
    // Along a ridge variances may wander without end at the same evidence.
    still = evidence - old_evidence <= std::max(slack, o.evidence_tolerance) ? still + 1 : 0;
    converged = change < o.tolerance || still >= (o.evidence_tolerance > 0 ? 1 : 5);
  }
  const auto numbers = static_cast<double>(
      std::count_if(theta.begin(), theta.end(), [](double t) { return t > 0; }));
  Decomposition r = outcome(sums, form, D_of(theta), s2, numbers, m);
  r.spread_cov = sums.spread_cov(group, groups).all();
  r.iterations = iteration;
  r.converged = converged;
  return r;
}

Decomposition fit_full(const Moments& m, const Decomposition& diagonal,
                       const DecompositionOptions& o, double needed, Sums& sums) {
  Matrix D = as_matrix(diagonal.variances.D, m.d);
  const double typical = trace(D) / static_cast<double>(m.d);
  add_to_diagonal(1e-3 * typical + 1e-12, D);
  double s2 = diagonal.variances.s2;
  sums.centre(D, s2, false);
  double evidence = sums.evidence();
  bool converged = false;
  int iteration = 0, still = 0;
  for (; iteration < o.iterations && !converged; ++iteration) {
    sums.slopes();
    const Matrix next = sums.full_step();
    const double noise = std::max(kSmallestNoise, s2 * sums.noise_ratio());
    double moved = 0, largest = 1e-300;
    for (std::size_t j = 0; j < m.d * m.d; ++j) {
      moved = std::max(moved, std::abs(next.all()[j] - D.all()[j]));
      largest = std::max(largest, std::abs(next.all()[j]));
    }
    const double change = std::max(moved / largest, std::abs(noise - s2) / noise);
    D = next;
    s2 = noise;
    sums.centre(D, s2, false);
    const double gain = sums.evidence() - evidence;
    evidence = sums.evidence();
    still = gain <= std::max(1e-13 * std::abs(evidence), o.evidence_tolerance) ? still + 1 : 0;
    converged = change < o.tolerance || still >= (o.evidence_tolerance > 0 ? 1 : 5);
    // The first steps bring most of the gain. One that would have to go on ten times as far will
    // not.
    if (iteration + 1 >= kFullTrial && evidence + 10 * kFullTrial * gain < needed) break;
  }
  const double d = static_cast<double>(m.d);
  Decomposition r = outcome(sums, Covariance::kFull, D, s2, d * (d + 1) / 2, m);
  r.iterations = iteration;
  r.converged = converged;
  return r;
}

// The factor of D that an agent's rows speak for, 1 unless they do so clearly. With K = L'A L/s^2
// and h = L'(b - A x_c)/s^2 the log evidence of N(0, t D) against N(0, D) is a sum over the
// eigenvalues of K.
double widening(const Matrix& K, const Vector& h) {
  constexpr double kGain = 1.35;  // of log evidence: by chance in one agent of twenty
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
  double best = 1, most = kGain;
  for (int k = 1; k <= 40; ++k) {
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

Decomposition decompose_given(const Moments& m, const Variances& variances, double centre_precision,
                              Team& team) {
  Sums sums(m, centre_precision, team);
  const Matrix D = as_matrix(variances.D, m.d);
  const bool diagonal = is_diagonal(D);
  sums.centre(D, variances.s2, diagonal);
  return outcome(sums, diagonal ? Covariance::kDiagonal : Covariance::kFull, D, variances.s2, 0, m);
}

Chosen decompose(const Moments& m, const DecompositionOptions& o, Team& team) {
  Sums sums(m, o.centre_precision, team);
  const double y2 = sums.yy() / std::max(1.0, sums.rows());
  double s2 = o.start != nullptr ? o.start->s2 : std::max(kSmallestNoise, 0.5 * y2);
  const double guess = std::max(kSmallestNoise, 0.05 * y2);
  Chosen chosen;
  const std::vector<int> one(m.d, 0);
  // One agent says nothing of how agents differ.
  if (m.n == 1) {
    Decomposition r = fit_groups(m, one, 1, Covariance::kScalar, o, Vector(1), s2, sums);
    if (r.variances.D[0] != 0) {
      r.variances.D.assign(m.d * m.d, 0.0);
      const Decomposition centre = decompose_given(m, r.variances, o.centre_precision, team);
      r.centre = centre.centre, r.centre_cov = centre.centre_cov;
      r.log_evidence = centre.log_evidence;
    }
    r.spread_cov.assign(m.d * m.d, 0.0);
    chosen.tried.push_back(r);
    chosen.best = r;
    return chosen;
  }
  Vector start(m.d, guess);
  if (o.start != nullptr) start = diagonal_of(as_matrix(o.start->D, m.d));
  if (o.scalar) {
    const double typical = sum(start) / static_cast<double>(m.d);
    chosen.tried.push_back(
        fit_groups(m, one, 1, Covariance::kScalar, o, {std::max(typical, 1e-9)}, s2, sums));
    s2 = chosen.tried.back().variances.s2;
    if (o.start == nullptr)
      start.assign(m.d, std::max(chosen.tried.back().variances.D[0], 1e-6 * y2));
  }
  if (o.diagonal || o.full) {
    std::vector<int> each(m.d);
    for (std::size_t j = 0; j < m.d; ++j) each[j] = static_cast<int>(j);
    const Decomposition diagonal =
        fit_groups(m, each, static_cast<int>(m.d), Covariance::kDiagonal, o, start, s2, sums);
    if (o.diagonal) chosen.tried.push_back(diagonal);
    // A full D has d(d+1)/2 numbers: fewer than two agents a column cannot tell them.
    if (o.full && m.d > 1 && (m.n >= 2 * m.d || !(o.scalar || o.diagonal))) {
      double best = std::numeric_limits<double>::infinity();
      for (const Decomposition& t : chosen.tried) best = std::min(best, t.bic);
      const double d = static_cast<double>(m.d);
      const double needed = (d * (d + 1) / 2 * std::log(static_cast<double>(m.n)) - best) / 2;
      chosen.tried.push_back(fit_full(m, diagonal, o, needed, sums));
    }
  }
  chosen.best = *std::min_element(
      chosen.tried.begin(), chosen.tried.end(),
      [](const Decomposition& a, const Decomposition& b) { return a.bic < b.bic; });
  return chosen;
}

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
  // W = A F / s^2 is what the agent says of its residual; D is unsure by spread_cov.
  Matrix unsure = multiply(F, A);
  for (std::size_t j = 0; j < d * d; ++j)
    unsure.all()[j] = widened * widened * (model.spread_cov[j] * (unsure.all()[j] / s2));
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
