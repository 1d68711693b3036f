#include "affpcl/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/problem/some_agents.h"

namespace affpcl {
namespace {

constexpr double kSingular = 1e-14;  // reciprocal condition below which a solution means nothing

double smallest_symmetric(Matrix A) {
  symmetrise(A);
  return symmetric_eigenvalues(A)[0];
}

void divide(Matrix& A, double by) {
  for (double& a : A.all()) a /= by;
}

// The sum over all agents of a linear map given by its columns, as rows x cols.
template <class F>
Matrix summed_matrix(const Problem& problem, int rows, int cols, F apply_to_unit) {
  const std::int64_t n = problem.shape().agents;
  Matrix sum(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
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
Vector summed_vector(const Problem& problem, int rows, F write) {
  const std::int64_t n = problem.shape().agents;
  Vector sum(static_cast<std::size_t>(rows));
  Buffer space(static_cast<std::size_t>(rows) * kLanes);
  for (std::int64_t b = 0; b < blocks_of(n); ++b) {
    const Lanes lanes = lanes_of(b, n);
    const Out y{space.data(), rows, lanes_to_write(lanes.count)};
    write(lanes, y);
    for (int r = 0; r < rows; ++r)
      for (int l = 0; l < lanes.count; ++l) sum[static_cast<std::size_t>(r)] += y.row(r)[l];
  }
  return sum;
}

// Linear part of the central objective's mean system, and its value at theta = 0; both summed over
// agents.
struct CoeSystem {
  Matrix linear;
  Vector at_zero;
};
CoeSystem coe_system(const Problem& problem) {
  const Means& means = *problem.means();
  const int k = problem.shape().k;
  const std::vector<double> zero(static_cast<std::size_t>(k));
  const In theta0{zero.data(), k, 1};
  CoeSystem sys;
  sys.at_zero =
      summed_vector(problem, k, [&](Lanes lanes, Out y) { means.mean_coe(lanes, theta0, y); });
  // What each column's map has beside its linear part is the same for all columns.
  sys.linear = summed_matrix(
      problem, k, k, [&](Lanes lanes, In unit, Out y) { means.mean_coe(lanes, unit, y); });
  if (const SomeAgents* some = some_agents(problem)) {
    some->sum_sites(sys.at_zero);
    some->sum_sites(sys.linear.all());
  }
  for (std::size_t r = 0; r < sys.at_zero.size(); ++r)
    for (double& entry : sys.linear.row(r)) entry -= sys.at_zero[r];
  return sys;
}

bool all_finite(std::span<const double> x) {
  return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

// The largest sum of absolute values of a row.
double row_norm(MatrixView A) {
  double norm = 0;
  for (std::size_t i = 0; i < A.rows(); ++i) {
    double sum = 0;
    for (double a : A.row(i)) sum += std::abs(a);
    norm = std::max(norm, sum);
  }
  return norm;
}

// Solves A x = b, one system after the other.
class Systems {
 public:
  explicit Systems(std::size_t d) : space_(d) {}

  // False where x means nothing.
  bool solve(MatrixView A, std::span<const double> b, std::span<double> x) {
    lu_.factor(A);
    lu_.solve(b, x);
    constexpr double kMargin = 1e4;  // for rcond is of another norm
    return all_finite(x) &&
           (row_norm(A) * inverse_norm() * kMargin * kSingular < 1 || lu_.rcond() >= kSingular);
  }

 private:
  // No less than the norm of A's inverse: with all entries but the diagonal's made negative, that
  // of a triangular matrix can only grow (Higham 2002, ch. 8). To estimate a condition takes longer
  // than to decompose a small matrix.
  double inverse_norm() {
    const MatrixView LU = lu_.factors();
    const std::size_t d = LU.rows();
    double L = 0, U = 0;
    for (std::size_t i = 0; i < d; ++i) {
      space_[i] = 1;
      for (std::size_t j = 0; j < i; ++j) space_[i] += std::abs(LU(i, j)) * space_[j];
      L = std::max(L, space_[i]);
    }
    for (std::size_t i = d; i-- > 0;) {
      space_[i] = 1;
      for (std::size_t j = i + 1; j < d; ++j) space_[i] += std::abs(LU(i, j)) * space_[j];
      space_[i] /= std::abs(LU(i, i));
      U = std::max(U, space_[i]);
    }
    return L * U;
  }

  Lu lu_;
  Vector space_;
};

}  // namespace

void Problem::start(Lanes, Out x) const { fill(x, 0); }

void Problem::keep(std::int64_t first_block, std::int64_t last_block) {
  if (truth() != nullptr) truth_.x.keep(first_block, last_block);
}

void Problem::error(Lanes lanes, In x, Scratch& scratch, Out one_row) const {
  if (const Scores* scores = facets().scores) return scores->error(lanes, x, scratch, one_row);
  squared_distance(x, truth_.x.block(lanes.first / kLanes)[Field{0, shape().d}], one_row);
}

void subtract_objective(In b, Out g) {
  if (b.rows > 0) subtract(g, b, g);
}

CentralStart central_start(const Problem& problem) {
  CentralStart start = problem.central_start();
  start.x.resize(static_cast<std::size_t>(problem.shape().d));
  start.theta.resize(static_cast<std::size_t>(problem.shape().k));
  return start;
}

std::int64_t most_samples(const Problem& problem) {
  const Recorded* recorded = problem.facets().recorded;
  return recorded != nullptr ? recorded->most_samples() : INT64_MAX;
}

std::vector<double> mean_matrices(const Problem& problem, Lanes lanes) {
  const int d = problem.shape().d;
  const auto D = static_cast<std::size_t>(d);
  std::vector<double> all(D * D * static_cast<std::size_t>(lanes.count)), unit(D);
  Buffer space(D * kLanes);
  const Out y{space.data(), d, lanes_to_write(lanes.count)};
  const Means& means = *problem.means();
  for (std::size_t c = 0; c < D; ++c) {
    unit[c] = 1;
    means.mean_apply(lanes, In{unit.data(), d, 1}, y);
    unit[c] = 0;
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes.count); ++l)
      for (std::size_t r = 0; r < D; ++r) all[(l * D + r) * D + c] = y.row(static_cast<int>(r))[l];
  }
  return all;
}

void Problem::solve() {
  const Shape sh = shape();
  const int d = sh.d;
  const auto D = static_cast<std::size_t>(d);
  truth_.x = Store(d, sh.agents);
  Buffer space(D * kLanes);
  const Out b{space.data(), d};
  Matrix A0(D, D);
  Vector b0(D), bi(D), xi(D);
  Systems systems(D);
  const SomeAgents* some = some_agents(*this);
  for (std::int64_t blk = 0; blk < blocks_of(sh.agents); ++blk) {
    const Lanes lanes = lanes_of(blk, sh.agents);
    const std::vector<double> A = mean_matrices(*this, lanes);
    means()->mean_objective(lanes, b);
    const Out x = truth_.x.block(blk)[Field{0, d}];
    for (int l = 0; l < lanes.count; ++l) {
      if (some != nullptr && !some->has(lanes.first + l)) continue;
      const MatrixView Ai(A.data() + static_cast<std::size_t>(l) * D * D, D, D);
      for (std::size_t r = 0; r < D; ++r) bi[r] = b.row(static_cast<int>(r))[l];
      if (!systems.solve(Ai, bi, xi))
        throw BadInput(
            fmt::format("agent {}'s system has no unique solution (its mean matrix is singular)",
                        lanes.first + l));
      for (std::size_t r = 0; r < D; ++r) x.row(static_cast<int>(r))[l] = xi[r];
      for (std::size_t j = 0; j < D * D; ++j) A0.all()[j] += Ai.all()[j];
      for (std::size_t r = 0; r < D; ++r) b0[r] += bi[r];
    }
  }
  if (some != nullptr) {
    some->sum_sites(A0.all());
    some->sum_sites(b0);
  }
  if (!systems.solve(A0, b0, xi))
    throw BadInput(
        "the central system has no unique solution (the mean of the agents' matrices is singular)");
  truth_.xc = xi;
  if (sh.k > 0) {
    CoeSystem sys = coe_system(*this);
    for (double& v : sys.at_zero) v = -v;
    truth_.thetac.resize(sys.at_zero.size());
    solve_full_pivoting(sys.linear, sys.at_zero, truth_.thetac);
  }
}

Monotonicity monotonicity(const Problem& problem) {
  need_all_agents(problem, "a relative step_size schedule needs");
  const Shape sh = problem.shape();
  const double n = static_cast<double>(sh.agents);
  const auto D = static_cast<std::size_t>(sh.d);
  Monotonicity m;
  Matrix A0(D, D);
  for (std::int64_t b = 0; b < blocks_of(sh.agents); ++b) {
    const Lanes lanes = lanes_of(b, sh.agents);
    const std::vector<double> A = mean_matrices(problem, lanes);
    for (int l = 0; l < lanes.count; ++l) {
      const MatrixView Ai(A.data() + static_cast<std::size_t>(l) * D * D, D, D);
      m.agents.push_back(smallest_symmetric(Ai));
      for (std::size_t j = 0; j < D * D; ++j) A0.all()[j] += Ai.all()[j];
    }
  }
  divide(A0, n);
  m.central = smallest_symmetric(std::move(A0));
  if (sh.k > 0) {
    Matrix linear = coe_system(problem).linear;
    divide(linear, n);
    m.objective = smallest_symmetric(std::move(linear));
  }
  return m;
}

}  // namespace affpcl
