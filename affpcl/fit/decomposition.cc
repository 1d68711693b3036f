#include "affpcl/fit/decomposition.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "affpcl/fit/agents.h"

namespace affpcl {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using View = Eigen::Map<const Matrix>;
using VectorView = Eigen::Map<const Vector>;

constexpr double kSmallestNoise = 1e-10;    // s^2, the target having variance 1
constexpr double kLeastInformation = 0.01;  // about a variance: it is hardly above ten
constexpr int kFullTrial = 6;               // steps after which a hopeless full D is given up

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

View A_of(const Moments& m, std::size_t i) {
  return {m.A.data() + m.at(i) * m.d * m.d, index(m.d), index(m.d)};
}
VectorView b_of(const Moments& m, std::size_t i) {
  return {m.b.data() + m.at(i) * m.d, index(m.d)};
}

// D = L L'; zero columns where D has no spread.
Matrix root_of(const Matrix& D, bool diagonal) {
  if (diagonal) return D.diagonal().cwiseMax(0.0).cwiseSqrt().asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(D);
  return eigen.eigenvectors() *
         eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal().toDenseMatrix();
}

// The evidence at one (D, s^2), and what the next step needs: sums over agents, in two passes.
// Names are those of docs/explain/fit.md.
class Sums {
 public:
  Sums(const Moments& m, double centre_precision, Team& team)
      : m_(m),
        d_(index(m.d)),
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
      for (std::size_t j = 0; j < m.d; ++j) out[j] += A(index(j), index(j));
      out[m.d] += m.rows[m.at(i)];
      out[m.d + 1] += m.yy[m.at(i)];
    });
    column_squares_ = VectorView(totals, d_);
    N_ = totals[m.d];
    yy_ = totals[m.d + 1];
  }

  double rows() const { return N_; }
  double yy() const { return yy_; }
  const Vector& column_squares() const { return column_squares_; }

  // Pass 1: H = sum W_i, h = sum v_i; then x_c and the evidence.
  void centre(const Matrix& D, double s2, bool diagonal) {
    D_ = D, s2_ = s2, diagonal_ = diagonal;
    const Matrix L = root_of(D, diagonal);
    const Vector root = L.diagonal();
    const std::size_t dd = m_.d * m_.d;
    const double* sums = first_(team_, leaves_, [&](std::int64_t leaf, int, double* out) {
      Eigen::Map<Matrix> H(out, d_, d_);
      Eigen::Map<Vector> h(out + dd, d_);
      double* const rest = out + dd + m_.d;
      Matrix LA(d_, d_), K(d_, d_);
      each(leaf, [&](std::size_t i) {
        const auto A = A_of(m_, i);
        const auto b = b_of(m_, i);
        if (diagonal) {
          LA = root.asDiagonal() * A;
          K = LA * root.asDiagonal();
        } else {
          LA.noalias() = L.transpose() * A;
          K.noalias() = LA * L;
        }
        K /= s2;
        K.diagonal().array() += 1;
        const Eigen::LLT<Matrix, Eigen::Lower> C(K);
        LA /= s2;
        C.matrixL().solveInPlace(LA);  // Z
        Vector w = (diagonal ? Vector(root.cwiseProduct(b)) : Vector(L.transpose() * b)) / s2;
        C.matrixL().solveInPlace(w);
        Eigen::Map<Matrix> W(W_.data() + m_.at(i) * dd, d_, d_);
        W.setZero();
        W.selfadjointView<Eigen::Lower>().rankUpdate(LA.transpose(), -1.0);
        W.triangularView<Eigen::StrictlyUpper>() = W.transpose();
        W += A / s2;
        Eigen::Map<Vector> v(v_.data() + m_.at(i) * m_.d, d_);
        v = b / s2 - LA.transpose() * w;
        H += W;
        h += v;
        rest[0] += m_.yy[m_.at(i)] / s2 - w.squaredNorm();
        rest[1] += m_.rows[m_.at(i)] * std::log(s2) +
                   2 * Vector(C.matrixLLT().diagonal()).array().log().sum();
        // tr(A P)/s^2 = tr K (I + K)^-1 = d - |C^-1|^2
        Matrix Q = Matrix::Identity(d_, d_);
        C.matrixL().solveInPlace(Q);
        rest[2] += static_cast<double>(m_.d) - Q.squaredNorm();
      });
    });
    Matrix H = Eigen::Map<const Matrix>(sums, d_, d_);
    const Vector h = Eigen::Map<const Vector>(sums + dd, d_);
    const double* rest = sums + dd + m_.d;
    H.diagonal().array() += precision_;
    const Eigen::LDLT<Matrix> solver(H);
    H_inverse_ = solver.solve(Matrix::Identity(d_, d_));
    H_inverse_ = (H_inverse_ + H_inverse_.transpose()).eval() / 2;
    x_ = solver.solve(h);
    trace_AP_ = rest[2];
    double log_det = solver.vectorD().array().abs().max(1e-300).log().sum();
    if (precision_ > 0) log_det -= static_cast<double>(m_.d) * std::log(precision_);
    evidence_ =
        -0.5 * (N_ * std::log(2 * std::numbers::pi) + rest[1] + log_det + rest[0] - h.dot(x_));
  }

  // Pass 2: what the evidence does when D and s^2 change.
  void slopes() {
    const std::size_t dd = m_.d * m_.d;
    const double s2 = s2_;
    const Vector D_diagonal = D_.diagonal();
    const double* sums = second_(team_, leaves_, [&](std::int64_t leaf, int, double* out) {
      Eigen::Map<Matrix> G(out, d_, d_), T(out + dd, d_, d_), cross(out + 2 * dd, d_, d_),
          reach(out + 3 * dd, d_, d_);
      Eigen::Map<Vector> noise(out + 4 * dd, d_), c(out + 4 * dd + m_.d, d_);
      double* const rest = out + 4 * dd + 2 * m_.d;
      Matrix WH(d_, d_), DW(d_, d_);
      each(leaf, [&](std::size_t i) {
        const View W(W_.data() + m_.at(i) * dd, d_, d_);
        const auto A = A_of(m_, i);
        const auto b = b_of(m_, i);
        const Vector g = VectorView(v_.data() + m_.at(i) * m_.d, d_) - W * x_;
        const Vector u = diagonal_ ? Vector(D_diagonal.cwiseProduct(g)) : Vector(D_ * g);
        const Vector x = x_ + u;
        const double rss = std::max(0.0, m_.yy[m_.at(i)] - 2 * b.dot(x) + x.dot(A * x));
        WH.noalias() = W * H_inverse_;
        G.noalias() += g * g.transpose();
        if (diagonal_) {
          const Vector WHW = WH.cwiseProduct(W).rowwise().sum();
          T.diagonal() += W.diagonal() - WHW;
          rest[1] += WH.trace() - D_diagonal.dot(WHW);
        } else {
          T += W;
          T.noalias() -= WH * W;
          DW.noalias() = D_ * W;
          rest[1] += WH.trace() - WH.cwiseProduct(DW).sum();
        }
        // q = X'V^-1 e, e = V^-1 r; and e'V^-1 e, which needs g'P g = g'u - u'W u.
        const Vector q = (g - W * u) / s2;
        cross += g.asDiagonal() * W * g.asDiagonal();
        reach += W * g.asDiagonal();
        noise += g.cwiseProduct(q);
        c += q;
        rest[0] += rss / (s2 * s2);
        rest[2] += (rss / (s2 * s2) - (g.dot(u) - u.dot(W * u)) / s2) / s2;
      });
    });
    G_ = Eigen::Map<const Matrix>(sums, d_, d_);
    T_ = Eigen::Map<const Matrix>(sums + dd, d_, d_);
    cross_ = Eigen::Map<const Matrix>(sums + 2 * dd, d_, d_);
    reach_ = Eigen::Map<const Matrix>(sums + 3 * dd, d_, d_);
    noise_ = Eigen::Map<const Vector>(sums + 4 * dd, d_);
    c_ = Eigen::Map<const Vector>(sums + 4 * dd + m_.d, d_);
    const double* rest = sums + 4 * dd + 2 * m_.d;
    ee_ = rest[0];
    trace_P_ = (N_ - trace_AP_ - rest[1]) / s2;
    eVe_ = rest[2];
  }

  double evidence() const { return evidence_; }
  const Vector& x() const { return x_; }
  const Matrix& H_inverse() const { return H_inverse_; }

  // Every group of coordinates has one variance (one group: scalar; d groups: diagonal). The
  // evidence's slope and average information in (variances, s^2).
  void information(const std::vector<int>& group, int groups, Vector& score, Matrix& AI) const {
    Matrix R = Matrix::Zero(d_, groups + 1);
    score = Vector::Zero(groups + 1);
    AI = Matrix::Zero(groups + 1, groups + 1);
    for (Eigen::Index j = 0; j < d_; ++j) {
      const int g = group[static_cast<std::size_t>(j)];
      score[g] += (G_(j, j) - T_(j, j)) / 2;
      R.col(g) += reach_.col(j);
      AI(g, groups) += noise_[j];
      for (Eigen::Index k = 0; k < d_; ++k)
        AI(g, group[static_cast<std::size_t>(k)]) += cross_(j, k);
    }
    R.col(groups) = c_;
    score[groups] = (ee_ - trace_P_) / 2;
    AI(groups, groups) = eVe_;
    AI.row(groups) = AI.col(groups).transpose();
    AI = (AI - R.transpose() * H_inverse_ * R).eval() / 2;
  }

  // Inverse of the expected information about the groups' variances, for every pair of coordinates.
  Matrix spread_cov(const std::vector<int>& group, int groups) {
    Matrix S = Matrix::Zero(d_, groups);
    for (Eigen::Index j = 0; j < d_; ++j) S(j, group[static_cast<std::size_t>(j)]) = 1;
    const View squares(squares_([&](std::size_t i, double* out) {
                         Eigen::Map<Matrix>(out, d_, d_) +=
                             View(W_.data() + m_.at(i) * m_.d * m_.d, d_, d_).cwiseAbs2();
                       }),
                       d_, d_);
    Matrix information = S.transpose() * squares * S / 2;
    information.diagonal().array() += kLeastInformation;
    const Vector scale = information.diagonal().cwiseSqrt().cwiseInverse();
    information = (scale.asDiagonal() * information * scale.asDiagonal()).eval();
    const Matrix inverse = information.ldlt().solve(Matrix::Identity(groups, groups));
    S = (S * scale.asDiagonal()).eval();
    return S * inverse * S.transpose();
  }

  // The ratios of a step that never lowers the evidence: theta <- theta sqrt(slope up / slope
  // down).
  double noise_ratio() const { return ratio(ee_, trace_P_); }
  double group_ratio(const std::vector<int>& group, int which) const {
    double up = 0, down = 0;
    for (Eigen::Index j = 0; j < d_; ++j)
      if (group[static_cast<std::size_t>(j)] == which) up += G_(j, j), down += T_(j, j);
    return ratio(up, down);
  }
  // The same for a full D: the geometric mean of T^-1 and D G D.
  Matrix full_step() const {
    Matrix T = T_;
    T.diagonal().array() += 1e-12 * T.trace() / static_cast<double>(m_.d) + 1e-300;
    const Eigen::LLT<Matrix> C(T);
    const Matrix lower = C.matrixL();
    const Matrix inner = lower.transpose() * D_ * G_ * D_ * lower;
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen((inner + inner.transpose()) / 2);
    Matrix root = eigen.eigenvectors() *
                  eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal() *
                  eigen.eigenvectors().transpose();
    C.matrixU().solveInPlace(root);
    Matrix D = root.transpose();
    C.matrixU().solveInPlace(D);
    return (D + D.transpose()) / 2;
  }

 private:
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
  Eigen::Index d_;
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
  Matrix G_, T_, cross_, reach_;
  Vector noise_, c_;
  double ee_ = 0, trace_P_ = 0, eVe_ = 0;
};

Matrix as_matrix(const std::vector<double>& D, std::size_t d) {
  return Eigen::Map<const Matrix>(D.data(), index(d), index(d));
}

Decomposition outcome(const Sums& sums, Spread spread, const Matrix& D, double s2, double numbers,
                      const Moments& m) {
  Decomposition r;
  r.spread = spread;
  r.variances.D.assign(D.data(), D.data() + D.size());
  r.variances.s2 = s2;
  r.centre.assign(sums.x().data(), sums.x().data() + sums.x().size());
  r.spread_cov.assign(m.d * m.d, 0.0);
  r.centre_cov.assign(sums.H_inverse().data(), sums.H_inverse().data() + sums.H_inverse().size());
  r.log_evidence = sums.evidence();
  r.bic = -2 * r.log_evidence + numbers * std::log(static_cast<double>(m.n));
  return r;
}

// One variance for each group of coordinates: Newton steps with the average information, kept to
// variances >= 0, and where these do not raise the evidence the step that always does.
Decomposition fit_groups(const Moments& m, const std::vector<int>& group, int groups, Spread spread,
                         const DecompositionOptions& o, Vector theta, double s2, Sums& sums) {
  const auto D_of = [&](const Vector& t) {
    Vector diagonal(index(m.d));
    for (std::size_t j = 0; j < m.d; ++j) diagonal[index(j)] = t[group[j]];
    return Matrix(diagonal.asDiagonal());
  };
  // A variance comes back from 0 with what an agent can just see.
  Vector least = Vector::Zero(groups);
  for (std::size_t j = 0; j < m.d; ++j) least[group[j]] += sums.column_squares()[index(j)];
  least = (least.array() + 1e-12).inverse() * (1e-3 * static_cast<double>(m.n));

  sums.centre(D_of(theta), s2, true);
  double evidence = sums.evidence();
  Vector score;
  Matrix AI;
  bool converged = false;
  int iteration = 0, still = 0;
  for (; iteration < o.iterations && !converged; ++iteration) {
    sums.slopes();
    sums.information(group, groups, score, AI);
    std::vector<Eigen::Index> free;
    for (int g = 0; g < groups; ++g)
      if (theta[g] > 0 || score[g] > 0) free.push_back(g);
    if (s2 > kSmallestNoise || score[groups] > 0) free.push_back(groups);
    Matrix sub(index(free.size()), index(free.size()));
    Vector slope(index(free.size()));
    for (std::size_t a = 0; a < free.size(); ++a) {
      slope[index(a)] = score[free[a]];
      for (std::size_t b = 0; b < free.size(); ++b) sub(index(a), index(b)) = AI(free[a], free[b]);
    }
    const Vector scale = sub.diagonal().cwiseAbs().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    sub = (scale.asDiagonal() * sub * scale.asDiagonal()).eval();
    sub.diagonal().array() += 1e-9;
    const Vector step = scale.cwiseProduct(sub.ldlt().solve(scale.cwiseProduct(slope)));

    const Vector old_theta = theta;
    const double old_s2 = s2, old_evidence = evidence;
    const double slack = 1e-13 * std::abs(old_evidence);
    const Vector ups = [&] {
      Vector r(groups);
      for (int g = 0; g < groups; ++g) r[g] = sums.group_ratio(group, g);
      return r;
    }();
    const double noise_up = sums.noise_ratio();
    bool taken = false;
    for (double share = 1; share > 0.01 && !taken && step.allFinite(); share /= 4) {
      theta = old_theta;
      s2 = old_s2;
      for (std::size_t a = 0; a < free.size(); ++a) {
        const Eigen::Index g = free[a];
        const double move = share * step[index(a)];
        if (g == groups) {
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
      for (int g = 0; g < groups; ++g) theta[g] = old_theta[g] * ups[g];
      s2 = std::max(kSmallestNoise, old_s2 * noise_up);
      sums.centre(D_of(theta), s2, true);
      evidence = sums.evidence();
    }
    double change = std::abs(s2 - old_s2) / s2;
    for (int g = 0; g < groups; ++g) {
      const double size = std::max(theta[g], old_theta[g]);
      if (size > 1e-9 * least[g] * s2)
        change = std::max(change, std::abs(theta[g] - old_theta[g]) / size);
    }
    // Along a ridge variances may wander without end at the same evidence.
    still = evidence - old_evidence <= std::max(slack, o.evidence_tolerance) ? still + 1 : 0;
    converged = change < o.tolerance || still >= (o.evidence_tolerance > 0 ? 1 : 5);
  }
  const auto numbers = static_cast<double>((theta.array() > 0).count());
  Decomposition r = outcome(sums, spread, D_of(theta), s2, numbers, m);
  const Matrix unsure = sums.spread_cov(group, groups);
  r.spread_cov.assign(unsure.data(), unsure.data() + unsure.size());
  r.iterations = iteration;
  r.converged = converged;
  return r;
}

Decomposition fit_full(const Moments& m, const Decomposition& diagonal,
                       const DecompositionOptions& o, double needed, Sums& sums) {
  Matrix D = as_matrix(diagonal.variances.D, m.d);
  const double typical = D.trace() / static_cast<double>(m.d);
  D.diagonal().array() += 1e-3 * typical + 1e-12;
  double s2 = diagonal.variances.s2;
  sums.centre(D, s2, false);
  double evidence = sums.evidence();
  bool converged = false;
  int iteration = 0, still = 0;
  for (; iteration < o.iterations && !converged; ++iteration) {
    sums.slopes();
    const Matrix next = sums.full_step();
    const double noise = std::max(kSmallestNoise, s2 * sums.noise_ratio());
    const double change =
        std::max((next - D).cwiseAbs().maxCoeff() / std::max(next.cwiseAbs().maxCoeff(), 1e-300),
                 std::abs(noise - s2) / noise);
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
  Decomposition r = outcome(sums, Spread::kFull, D, s2, d * (d + 1) / 2, m);
  r.iterations = iteration;
  r.converged = converged;
  return r;
}

// The factor of D that an agent's rows speak for, 1 unless they do so clearly. With K = L'A L/s^2
// and h = L'(b - A x_c)/s^2 the log evidence of N(0, t D) against N(0, D) is a sum over the
// eigenvalues of K.
double widening(const Matrix& K, const Vector& h) {
  constexpr double kGain = 1.35;  // of log evidence: by chance in one agent of twenty
  Matrix one = K;
  one.diagonal().array() += 1;
  const Eigen::LLT<Matrix> C(one);
  Matrix Q = Matrix::Identity(K.rows(), K.cols());
  C.matrixL().solveInPlace(Q);
  const double slope = C.solve(h).squaredNorm() - (static_cast<double>(K.rows()) - Q.squaredNorm());
  if (!(slope > 0)) return 1;
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(K);
  const Eigen::ArrayXd e = eigen.eigenvalues().array().max(0.0);
  const Eigen::ArrayXd c2 = (eigen.eigenvectors().transpose() * h).array().square();
  double best = 1, most = kGain;
  for (int k = 1; k <= 40; ++k) {
    const double t = std::pow(2.0, k / 2.0);
    const double gain =
        (c2 * t / (1 + t * e) - c2 / (1 + e) - ((1 + t * e) / (1 + e)).log()).sum() / 2;
    if (gain > most) most = gain, best = t;
  }
  return best;
}

}  // namespace

const char* to_text(Spread spread) {
  return spread == Spread::kScalar ? "scalar" : spread == Spread::kDiagonal ? "diagonal" : "full";
}

Decomposition decompose_given(const Moments& m, const Variances& variances, double centre_precision,
                              Team& team) {
  Sums sums(m, centre_precision, team);
  const Matrix D = as_matrix(variances.D, m.d);
  const bool diagonal = D.isDiagonal(0.0);
  sums.centre(D, variances.s2, diagonal);
  return outcome(sums, diagonal ? Spread::kDiagonal : Spread::kFull, D, variances.s2, 0, m);
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
    Decomposition r = fit_groups(m, one, 1, Spread::kScalar, o, Vector::Zero(1), s2, sums);
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
  Vector start = Vector::Constant(index(m.d), guess);
  if (o.start != nullptr) start = as_matrix(o.start->D, m.d).diagonal();
  if (o.scalar) {
    chosen.tried.push_back(fit_groups(m, one, 1, Spread::kScalar, o,
                                      Vector::Constant(1, std::max(start.mean(), 1e-9)), s2, sums));
    s2 = chosen.tried.back().variances.s2;
    if (o.start == nullptr)
      start.setConstant(std::max(chosen.tried.back().variances.D[0], 1e-6 * y2));
  }
  if (o.diagonal || o.full) {
    std::vector<int> each(m.d);
    for (std::size_t j = 0; j < m.d; ++j) each[j] = static_cast<int>(j);
    const Decomposition diagonal =
        fit_groups(m, each, static_cast<int>(m.d), Spread::kDiagonal, o, start, s2, sums);
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
  const auto A = A_of(m, agent);
  const auto b = b_of(m, agent);
  const Matrix D = as_matrix(model.variances.D, m.d), H = as_matrix(model.centre_cov, m.d);
  const VectorView centre(model.centre.data(), index(m.d));
  const double s2 = model.variances.s2;
  Matrix L = root_of(D, D.isDiagonal(0.0));
  Matrix K = L.transpose() * A * L / s2;
  const double widened = widening(K, L.transpose() * (b - A * centre) / s2);
  L *= std::sqrt(widened);
  K *= widened;
  K.diagonal().array() += 1;
  const Eigen::LLT<Matrix> C(K);
  Matrix half = L.transpose();
  C.matrixL().solveInPlace(half);  // P = half' half
  const Matrix P = half.transpose() * half;
  const Vector x = centre + P * (b - A * centre) / s2;
  const Matrix F = Matrix::Identity(index(m.d), index(m.d)) - P * A / s2;
  // W = A F / s^2 is what the agent says of its residual; D is unsure by spread_cov.
  const Matrix unsure =
      widened * widened * as_matrix(model.spread_cov, m.d).cwiseProduct(A * F / s2);
  Matrix known = P + F * H * F.transpose();
  known = (known + known.transpose()).eval() / 2;
  Matrix cov = known + 2 * F * unsure * F.transpose();
  cov = (cov + cov.transpose()).eval() / 2;
  return {{x.data(), x.data() + x.size()},
          {cov.data(), cov.data() + cov.size()},
          {known.data(), known.data() + known.size()},
          widened};
}

Posterior unseen_posterior(const Decomposition& model) {
  Posterior p{model.centre, model.centre_cov, {}, 1};
  for (std::size_t j = 0; j < p.cov.size(); ++j) p.cov[j] += model.variances.D[j];
  p.smoother = p.cov;
  return p;
}

}  // namespace affpcl
