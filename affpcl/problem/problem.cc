#include "affpcl/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"
#include "affpcl/problem/agent_share.h"
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

// What one block adds to the central objective's mean system: a k x k matrix whose columns are
// mean_coe of the unit vectors, then mean_coe of 0.
void add_coe(const Problem& problem, Lanes lanes, double* sums) {
  const Means& means = *problem.means();
  const int k = problem.shape().k;
  const auto K = static_cast<std::size_t>(k);
  Buffer space(K * kLanes);
  const Out y{space.data(), k, lanes_to_write(lanes.count)};
  std::vector<double> unit(K);
  for (std::size_t c = 0; c <= K; ++c) {
    if (c < K) unit[c] = 1;
    means.mean_coe(lanes, In{unit.data(), k, 1}, y);
    if (c < K) unit[c] = 0;
    double* const to = sums + (c < K ? c : K * K);
    for (int r = 0; r < k; ++r)
      for (int l = 0; l < lanes.count; ++l)
        to[static_cast<std::size_t>(r) * (c < K ? K : 1)] += y.row(r)[l];
  }
}

std::size_t coe_sums(int k) {
  return static_cast<std::size_t>(k) * static_cast<std::size_t>(k + 1);
}

// Linear part of the central objective's mean system, and its value at theta = 0; both summed over
// agents.
struct CoeSystem {
  CoeSystem(const double* sums, int k)
      : linear(static_cast<std::size_t>(k), static_cast<std::size_t>(k)),
        at_zero(static_cast<std::size_t>(k)) {
    std::copy_n(sums, linear.all().size(), linear.all().begin());
    std::copy_n(sums + linear.all().size(), at_zero.size(), at_zero.begin());
    // What each column's map has beside its linear part is the same for all columns.
    for (std::size_t r = 0; r < at_zero.size(); ++r)
      for (double& entry : linear.row(r)) entry -= at_zero[r];
  }
  Matrix linear;
  Vector at_zero;
};

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

// The solutions of a block's agents; what it adds to A0, to b0 and to the central objective's
// system, where `sums` is not null.
void Problem::solve_block(std::int64_t block, Out x, double* sums) const {
  const Shape sh = shape();
  const auto D = static_cast<std::size_t>(sh.d);
  const Lanes lanes = lanes_of(block, sh.agents);
  Buffer space(D * kLanes);
  const Out b{space.data(), sh.d};
  Vector bi(D), xi(D);
  Systems systems(D);
  const SomeAgents* some = some_agents(*this);
  const std::vector<double> A = mean_matrices(*this, lanes);
  means()->mean_objective(lanes, b);
  for (int l = 0; l < lanes.count; ++l) {
    if (some != nullptr && !some->has(lanes.first + l)) continue;
    const MatrixView Ai(A.data() + static_cast<std::size_t>(l) * D * D, D, D);
    for (std::size_t r = 0; r < D; ++r) bi[r] = b.row(static_cast<int>(r))[l];
    if (!systems.solve(Ai, bi, xi))
      throw BadInput(
          fmt::format("agent {}'s system has no unique solution (its mean matrix is singular)",
                      lanes.first + l));
    for (std::size_t r = 0; r < D; ++r) x.row(static_cast<int>(r))[l] = xi[r];
    if (sums == nullptr) continue;
    for (std::size_t j = 0; j < D * D; ++j) sums[j] += Ai.all()[j];
    for (std::size_t r = 0; r < D; ++r) sums[D * D + r] += bi[r];
  }
  if (sums != nullptr && sh.k > 0) add_coe(*this, lanes, sums + D * D + D);
}

void Problem::solve(const AgentShare& share) {
  const Shape sh = shape();
  const auto D = static_cast<std::size_t>(sh.d);
  truth_.x = MadeStore(sh.d, sh.agents, share,
                       [this](std::int64_t block, Out x) { solve_block(block, x, nullptr); });
  std::vector<double> sums = share.sum(
      sh.agents, D * D + D + coe_sums(sh.k), [this, &sh](std::int64_t block, double* numbers) {
        solve_block(block, truth_.x.block(block)[Field{0, sh.d}], numbers);
      });
  if (const SomeAgents* some = some_agents(*this)) some->sum_sites(sums);
  Vector xc(D);
  Systems systems(D);
  if (!systems.solve({sums.data(), D, D}, std::span(sums).subspan(D * D, D), xc))
    throw BadInput(
        "the central system has no unique solution (the mean of the agents' matrices is singular)");
  truth_.xc = std::move(xc);
  if (sh.k > 0) {
    CoeSystem sys(sums.data() + D * D + D, sh.k);
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
    const std::vector<double> sums =
        all_agents().sum(sh.agents, coe_sums(sh.k), [&](std::int64_t block, double* numbers) {
          add_coe(problem, lanes_of(block, sh.agents), numbers);
        });
    Matrix linear = CoeSystem(sums.data(), sh.k).linear;
    divide(linear, n);
    m.objective = smallest_symmetric(std::move(linear));
  }
  return m;
}

}  // namespace affpcl
