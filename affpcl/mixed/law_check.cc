#include "affpcl/mixed/law_check.h"

#include <algorithm>
#include <cmath>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/table/agent_sum.h"

namespace affpcl {
namespace {

using namespace mixed;

constexpr double kClearly = 1.65;           // standard errors of the difference
constexpr std::size_t kMostAgents = 2000;   // about, that are compared
constexpr double kRowsOfAllFolds = 20'000;  // more rows: one fold is enough

// Squared errors of x on the rows of `all` that are not among `learnt_from`.
double held_out_loss(const Moments& all, const Moments& learnt_from, std::size_t i,
                     std::span<const double> x) {
  const std::size_t d = all.d, at = all.at(i);
  Matrix A = A_of(all, i);
  for (std::size_t j = 0; j < d * d; ++j) A.all()[j] -= learnt_from.A[at * d * d + j];
  double loss = all.yy[at] - learnt_from.yy[at];
  for (std::size_t j = 0; j < d; ++j)
    loss += x[j] * (dot(A.row(j), x) - 2 * (all.b[at * d + j] - learnt_from.b[at * d + j]));
  return loss;
}

}  // namespace

bool law_misleads(const Frame& frame, std::size_t channel, const Moments& all, const Learnt& learnt,
                  Team& team) {
  const Learnt plain = without_law(learnt, all);
  const std::size_t step = std::max<std::size_t>(1, all.n / kMostAgents);
  const int folds = static_cast<double>(frame.all_rows) > kRowsOfAllFolds ? 1 : frame.folds();
  std::vector<double> worse(all.held());
  for (int f = 0; f < folds; ++f) {
    const Moments outside = frame.moments(channel, f, team);
    team.each(own_agents(all.n, team), [&](std::int64_t agent, int) {
      const auto i = static_cast<std::size_t>(agent);
      if (i % step != 0 || outside.rows[all.at(i)] == all.rows[all.at(i)]) return;
      worse[all.at(i)] +=
          held_out_loss(all, outside, i, averaged_coefficients(outside, learnt, i)) -
          held_out_loss(all, outside, i, averaged_coefficients(outside, plain, i));
    });
  }
  AgentSum sum_over("whether agents' own noise helps", 3, all.n, team);
  const double* const sums = sum_over([&](std::size_t i, double* out) {
    if (i % step != 0) return;
    const double v = worse[all.at(i)];
    out[0] += v, out[1] += v * v, out[2] += 1;
  });
  const double mean = sums[0] / sums[2];
  return sums[0] > kClearly * std::sqrt(std::max(0.0, sums[1] - sums[2] * mean * mean));
}

}  // namespace affpcl
