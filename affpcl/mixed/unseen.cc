#include "affpcl/mixed/unseen.h"

#include <algorithm>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/evidence.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr std::size_t kFewestAgents = 4;  // to compare on
constexpr double kLeastWeight = 0.05;     // a smaller one is 0

// Sums over a group of agents: H and h make the centre, A and b the pooled model.
struct GroupSums {
  GroupSums(const double* numbers, std::size_t d)
      : H(numbers, d, d), A(numbers + d * d, d, d), h(numbers + 2 * d * d, d), b(h.data() + d, d) {}
  static std::size_t width(std::size_t d) { return 2 * d * d + 2 * d; }
  MatrixView H, A;
  std::span<const double> h, b;
};

// Solves (all - part + ridge) x = (all - part).
Vector solve_without(MatrixView all, MatrixView part, std::span<const double> all_side,
                     std::span<const double> part_side, std::span<const double> ridge) {
  Matrix left = all;
  Vector side(all_side.begin(), all_side.end());
  for (std::size_t j = 0; j < left.all().size(); ++j) left.all()[j] -= part.all()[j];
  for (std::size_t j = 0; j < side.size(); ++j) {
    left(j, j) += ridge[j];
    side[j] -= part_side[j];
  }
  return Ldlt(left).solve(side);
}

}  // namespace

double pooled_weight(const std::vector<std::size_t>& group, const Moments& m, const Learnt& learnt,
                     const Ridge& pooled, double centre_precision, Team& team) {
  if (m.n < kFewestAgents) return 0;
  const std::size_t d = m.d, groups = kUnseenGroups, width = GroupSums::width(d);
  const Decomposition& best = learnt.best();
  Evidence evidence(learnt.moments, centre_precision, team);
  const MatrixView D = as_matrix(best.variances.D, d);
  evidence(D, best.variances.s2, is_diagonal(D));
  const auto first = static_cast<std::size_t>(own_agents(m.n, team).first);
  AgentSum sum_over("model of unseen agents", groups * width, m.n, team);
  const double* const sums = sum_over([&](std::size_t i, double* out) {
    double* const to = out + group[i - first] * width;
    add(evidence.information(i).all(), {to, d * d});
    add(A_of(m, i).all(), {to + d * d, d * d});
    add(evidence.pull(i), {to + 2 * d * d, d});
    add(b_of(m, i), {to + 2 * d * d + d, d});
  });
  Vector total(width), prior(d, centre_precision), penalty(d, pooled.strength);
  penalty[0] = 0;
  for (std::size_t g = 0; g < groups; ++g) add({sums + g * width, width}, total);
  const GroupSums all(total.data(), d);
  // The squared error of centre + w (pooled - centre) on the held-out rows is quadratic in w.
  double slope = 0, curvature = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const GroupSums out(sums + g * width, d);
    const Vector centre = solve_without(all.H, out.H, all.h, out.h, prior);
    Vector apart = solve_without(all.A, out.A, all.b, out.b, penalty);
    for (std::size_t j = 0; j < d; ++j) apart[j] -= centre[j];
    const Vector A_apart = multiply(out.A, apart);
    slope += dot(apart, out.b) - dot(A_apart, centre);
    curvature += dot(A_apart, apart);
  }
  if (!(curvature > 0)) return 0;
  const double weight = std::clamp(slope / curvature, 0.0, 1.0);
  return weight < kLeastWeight ? 0 : weight;
}

}  // namespace affpcl
