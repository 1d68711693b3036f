#include "affpcl/problem/problem.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "affpcl/base/error.h"

namespace affpcl {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kSingular = 1e-14;  // reciprocal condition below which a solution means nothing

[[noreturn]] void lacking(const char* what) {
  throw std::logic_error(fmt::format("this problem has no {}", what));
}

double smallest_symmetric(const Matrix& A) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(0.5 * (A + A.transpose()), Eigen::EigenvaluesOnly)
      .eigenvalues()(0);
}

// The sum over all agents of a linear map given by its columns, as rows x cols.
template <class F>
Matrix summed_matrix(const Problem& problem, int rows, int cols, F apply_to_unit) {
  const std::int64_t n = problem.shape().agents;
  Matrix sum = Matrix::Zero(rows, cols);
  Buffer space(static_cast<std::size_t>(rows) * kLanes);
  std::vector<double> unit(static_cast<std::size_t>(cols));
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    const Out y{space.data(), rows, lanes_to_write(lanes.count)};
    for (int c = 0; c < cols; ++c) {
      unit[static_cast<std::size_t>(c)] = 1;
      apply_to_unit(lanes, In{unit.data(), cols, 1}, y);
      unit[static_cast<std::size_t>(c)] = 0;
      for (int r = 0; r < rows; ++r)
        for (int l = 0; l < lanes.count; ++l) sum(r, c) += y.row(r)[l];
    }
  }
  return sum;
}

template <class F>
Eigen::VectorXd summed_vector(const Problem& problem, int rows, F write) {
  const std::int64_t n = problem.shape().agents;
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(rows);
  Buffer space(static_cast<std::size_t>(rows) * kLanes);
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    const Out y{space.data(), rows, lanes_to_write(lanes.count)};
    write(lanes, y);
    for (int r = 0; r < rows; ++r)
      for (int l = 0; l < lanes.count; ++l) sum(r) += y.row(r)[l];
  }
  return sum;
}

// Linear part of the central objective's mean system, and its value at theta = 0; both summed over
// agents.
struct CoeSystem {
  Matrix linear;
  Eigen::VectorXd at_zero;
};
CoeSystem coe_system(const Problem& problem) {
  const int k = problem.shape().k;
  const std::vector<double> zero(static_cast<std::size_t>(k));
  const In theta0{zero.data(), k, 1};
  CoeSystem sys;
  sys.at_zero =
      summed_vector(problem, k, [&](Lanes lanes, Out y) { problem.mean_coe(lanes, theta0, y); });
  // What each column's map has beside its linear part is the same for all columns.
  sys.linear = summed_matrix(
      problem, k, k, [&](Lanes lanes, In unit, Out y) { problem.mean_coe(lanes, unit, y); });
  sys.linear.colwise() -= sys.at_zero;
  return sys;
}

// out = sum over outcomes of their probability times what f makes of them.
template <class F>
void over_outcomes(const Problem& problem, Lanes lanes, Out out, F f) {
  if (problem.outcomes() == 0) lacking("means");
  Layout world, sample;
  problem.declare(world, sample);
  Buffer state(static_cast<std::size_t>(sample.rows()) * kLanes),
      space(static_cast<std::size_t>(out.rows) * kLanes);
  const Out s{state.data(), sample.rows()}, y{space.data(), out.rows};
  fill(out, 0);
  for (int o = 0; o < problem.outcomes(); ++o) {
    problem.outcome(lanes, o, s);
    f(s, y);
    for (int l = 0; l < lanes.count; ++l) {
      const double mu = problem.probability(lanes.first + l, o);
      if (mu == 0) continue;
      for (int r = 0; r < out.rows; ++r) out.row(r)[l] += mu * y.row(r)[l];
    }
  }
}

// Solves A x = b, one system after the other.
class Systems {
 public:
  explicit Systems(int d) : lu_(d), space_(d) {}

  // False where x means nothing.
  bool solve(const Eigen::Ref<const Matrix>& A, const Eigen::VectorXd& b, Eigen::VectorXd& x) {
    lu_.compute(A);
    x = lu_.solve(b);
    const double norm = A.cwiseAbs().rowwise().sum().maxCoeff();
    constexpr double kMargin = 1e4;  // for rcond is of another norm
    return x.allFinite() &&
           (norm * inverse_norm() * kMargin * kSingular < 1 || lu_.rcond() >= kSingular);
  }

 private:
  // No less than the norm of A's inverse: with all entries but the diagonal's made negative, that
  // of a triangular matrix can only grow (Higham 2002, ch. 8). To estimate a condition takes longer
  // than to decompose a small matrix.
  double inverse_norm() {
    const Matrix& LU = lu_.matrixLU();
    const Eigen::Index d = LU.rows();
    double L = 0, U = 0;
    for (Eigen::Index i = 0; i < d; ++i) {
      space_(i) = 1;
      for (Eigen::Index j = 0; j < i; ++j) space_(i) += std::abs(LU(i, j)) * space_(j);
      L = std::max(L, space_(i));
    }
    for (Eigen::Index i = d - 1; i >= 0; --i) {
      space_(i) = 1;
      for (Eigen::Index j = i + 1; j < d; ++j) space_(i) += std::abs(LU(i, j)) * space_(j);
      space_(i) /= std::abs(LU(i, i));
      U = std::max(U, space_(i));
    }
    return L * U;
  }

  Eigen::PartialPivLU<Matrix> lu_;
  Eigen::VectorXd space_;
};

std::vector<double> to_vector(const Eigen::VectorXd& v) { return {v.data(), v.data() + v.size()}; }

}  // namespace

void Problem::Phi(Lanes, In, In, Out) const { lacking("Phi"); }
void Problem::known(Lanes, In, Out) const { lacking("known central objective"); }
void Problem::coe(Lanes, In, In b, In, In bhat, Out g) const { subtract(bhat, b, g); }
void Problem::residual(Lanes lanes, In s, In b, In x, Out g) const {
  apply(lanes, s, x, g);
  subtract(g, b, g);
}
void Problem::at_centre(Lanes lanes, In s, In b, In x, In theta, const AtCentre& to) const {
  Phi(lanes, s, theta, to.g);
  coe(lanes, s, b, theta, to.g, to.gtheta);
  apply(lanes, s, x, to.gx);
  subtract(to.gx, to.g, to.g);
  subtract(to.gx, b, to.gx);
}
void Problem::draw_pair(const Draw&, Lanes, Out, Out) const { lacking("coupled pairs"); }
void Problem::psi(Lanes, In, Out) const { lacking("ratio features"); }
void Problem::cell(Lanes, In, Out) const { lacking("finite table"); }
void Problem::mean_apply(Lanes lanes, In x, Out Ax) const {
  over_outcomes(*this, lanes, Ax, [&](In s, Out y) { apply(lanes, s, x, y); });
}
void Problem::mean_objective(Lanes lanes, Out b) const {
  over_outcomes(*this, lanes, b, [&](In s, Out y) { objective(lanes, s, y); });
}
void Problem::mean_Phi(Lanes lanes, In theta, Out bhat) const {
  over_outcomes(*this, lanes, bhat, [&](In s, Out y) { Phi(lanes, s, theta, y); });
}
void Problem::mean_coe(Lanes lanes, In theta, Out g) const {
  const int d = shape().d;
  const std::size_t size = static_cast<std::size_t>(d) * kLanes;
  if (outcomes() == 0) {
    const Buffer space(size);
    const Out b{space.data(), d, g.lanes};
    mean_Phi(lanes, theta, g);
    mean_objective(lanes, b);
    return add_scaled(g, -1, b);
  }
  const Buffer space(2 * size);
  const Out b{space.data(), d}, bhat{space.data() + size, d};
  over_outcomes(*this, lanes, g, [&](In s, Out y) {
    objective(lanes, s, b);
    Phi(lanes, s, theta, bhat);
    coe(lanes, s, b, theta, bhat, y);
  });
}
double Problem::probability(std::int64_t, int) const { lacking("finite outcomes"); }
void Problem::outcome(Lanes, int, Out) const { lacking("finite outcomes"); }
void Occupancy::visit(Lanes, In, Out) const { lacking("counted states"); }
void Densities::accumulate_single(Lanes, In, In, Scratch&, double*) const {
  lacking("densities in single precision");
}
double Densities::tv(std::int64_t, std::int64_t) const { return std::nan(""); }
double Problem::G_A() const { lacking("bound on A"); }
double Problem::G_Phi() const { lacking("bound on Phi"); }

std::vector<double> Problem::start_x(std::int64_t) const {
  return std::vector<double>(static_cast<std::size_t>(shape().d));
}
std::vector<double> Problem::start_xc() const {
  return std::vector<double>(static_cast<std::size_t>(shape().d));
}
std::vector<double> Problem::start_thetac() const {
  return std::vector<double>(static_cast<std::size_t>(shape().k));
}

void Problem::error(Lanes lanes, In x, Out one_row) const {
  squared_distance(x, truth_.x.block(lanes.first / kLanes)[Field{0, shape().d}], one_row);
}

std::vector<double> mean_matrices(const Problem& problem, Lanes lanes) {
  const int d = problem.shape().d;
  const auto D = static_cast<std::size_t>(d);
  std::vector<double> all(D * D * static_cast<std::size_t>(lanes.count)), unit(D);
  Buffer space(D * kLanes);
  const Out y{space.data(), d, lanes_to_write(lanes.count)};
  for (std::size_t c = 0; c < D; ++c) {
    unit[c] = 1;
    problem.mean_apply(lanes, In{unit.data(), d, 1}, y);
    unit[c] = 0;
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l)
      for (std::size_t r = 0; r < D; ++r) all[(l * D + r) * D + c] = y.row(static_cast<int>(r))[l];
  }
  return all;
}

void Problem::solve() {
  const Shape sh = shape();
  const int d = sh.d;
  truth_.x = Store(d, sh.agents);
  Buffer space(static_cast<std::size_t>(d) * kLanes);
  const Out b{space.data(), d};
  Matrix A0 = Matrix::Zero(d, d);
  Eigen::VectorXd b0 = Eigen::VectorXd::Zero(d), bi(d), xi(d);
  Systems systems(d);
  for (std::int64_t blk = 0; blk < blocks_of(sh.agents); ++blk) {
    const Lanes lanes = lanes_of(blk, sh.agents);
    const std::vector<double> A = mean_matrices(*this, lanes);
    mean_objective(lanes, b);
    const Out x = truth_.x.block(blk)[Field{0, d}];
    for (int l = 0; l < lanes.count; ++l) {
      const Eigen::Map<const Matrix> Ai(A.data() + static_cast<std::ptrdiff_t>(l) * d * d, d, d);
      for (int r = 0; r < d; ++r) bi(r) = b.row(r)[l];
      if (!systems.solve(Ai, bi, xi))
        throw BadInput(
            fmt::format("agent {}'s system has no unique solution (its mean matrix is singular)",
                        lanes.first + l));
      for (int r = 0; r < d; ++r) x.row(r)[l] = xi(r);
      A0 += Ai;
      b0 += bi;
    }
  }
  if (!systems.solve(A0, b0, xi))
    throw BadInput(
        "the central system has no unique solution (the mean of the agents' matrices is singular)");
  truth_.xc = to_vector(xi);
  if (sh.k > 0) {
    const CoeSystem sys = coe_system(*this);
    truth_.thetac = to_vector(sys.linear.fullPivLu().solve(-sys.at_zero));
  }
}

Monotonicity monotonicity(const Problem& problem) {
  const Shape sh = problem.shape();
  const double n = static_cast<double>(sh.agents);
  Monotonicity m;
  Matrix A0 = Matrix::Zero(sh.d, sh.d);
  for (std::int64_t b = 0; b < blocks_of(sh.agents); ++b) {
    const Lanes lanes = lanes_of(b, sh.agents);
    const std::vector<double> A = mean_matrices(problem, lanes);
    for (int l = 0; l < lanes.count; ++l) {
      const Eigen::Map<const Matrix> Ai(A.data() + static_cast<std::ptrdiff_t>(l) * sh.d * sh.d,
                                        sh.d, sh.d);
      m.agents.push_back(smallest_symmetric(Ai));
      A0 += Ai;
    }
  }
  m.central = smallest_symmetric(A0 / n);
  if (sh.k > 0) m.objective = smallest_symmetric(coe_system(problem).linear / n);
  return m;
}

}  // namespace affpcl
