#include "affpcl/problem/mdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "affpcl/base/error.h"
#include "affpcl/math/dense.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The size is the caller's promise: a wrong one is a bug, not bad input.
void expect_size(const char* name, std::size_t size, std::int64_t expected) {
  if (size != at(expected))
    throw std::logic_error(fmt::format("{} has {} entries, not {}", name, size, expected));
}

MatrixView matrix(const char* name, std::span<const double> x, std::int64_t rows,
                  std::int64_t cols) {
  expect_size(name, x.size(), rows * cols);
  return {x.data(), at(rows), at(cols)};
}

std::span<const double> vector(const char* name, std::span<const double> x, std::int64_t rows) {
  expect_size(name, x.size(), rows);
  return x;
}

// y + factor x
Vector plus(std::span<const double> y, double factor, std::span<const double> x) {
  Vector sum(y.begin(), y.end());
  for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += factor * x[r];
  return sum;
}

double largest(std::span<const double> x) {
  double size = 0;
  for (double v : x) size = std::max(size, std::abs(v));
  return size;
}

void check_finite(const char* name, std::span<const double> x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!std::isfinite(x[i]))
      throw BadInput(fmt::format("{}: entry {} is {}, not a finite number", name, i, x[i]));
}

void check_weights(std::span<const double> weights) {
  check_finite("weights", weights);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] < 0)
      throw BadInput(
          fmt::format("weights: entry {} is {}, but must not be negative", i, weights[i]));
}

MatrixView features(const Basis& b) {
  check_finite("features", b.phi);
  return matrix("features", b.phi, b.rows, b.dim);
}

void check_gamma(std::string_view name, double gamma) {
  if (!(gamma >= 0 && gamma < 1))
    throw BadInput(fmt::format("{}: gamma = {} is not allowed: it must be at least 0 and below 1",
                               name, gamma));
}

void check_temperature(double temperature) {
  if (!(temperature > 0 && std::isfinite(temperature)))
    throw BadInput(fmt::format("temperature = {} is not allowed: it must be above 0", temperature));
}

// Which states `from` leads to, or which lead to it.
std::vector<bool> linked(const Chain& chain, int from, bool backward) {
  const int n = chain.states;
  std::vector<bool> seen(at(n));
  std::vector<int> frontier{from};
  seen[at(from)] = true;
  while (!frontier.empty()) {
    const int s = frontier.back();
    frontier.pop_back();
    for (int t = 0; t < n; ++t)
      if (!seen[at(t)] && chain.P[at(backward ? t : s) * at(n) + at(backward ? s : t)] > 0)
        seen[at(t)] = true, frontier.push_back(t);
  }
  return seen;
}

struct Class {
  int state;                  // one of its states
  std::vector<bool> members;  // what that state leads to
  std::vector<bool> origins;  // what leads to that state
};

// A class the chain can enter from `state` and never leave: move on to whatever does not lead back.
Class closed_class(const Chain& chain, int state) {
  for (;;) {
    Class c{state, linked(chain, state, false), linked(chain, state, true)};
    for (int t = 0; t < chain.states; ++t)
      if (c.members[at(t)] && !c.origins[at(t)]) state = t;
    if (state == c.state) return c;
  }
}

// The states of the only closed class.
std::vector<int> recurrent(const Chain& chain) {
  const Class c = closed_class(chain, 0);
  std::vector<int> states;
  for (int t = 0; t < chain.states; ++t) {
    if (!c.origins[at(t)])
      throw BadInput(
          fmt::format("the chain has no unique stationary law: it can stay for ever in a class "
                      "with state {} or in one with state {}",
                      c.state, closed_class(chain, t).state));
    if (c.members[at(t)]) states.push_back(t);
  }
  return states;
}

// Expected features of the next pair under a policy: [pairs][dim].
Matrix next_features(const Mdp& mdp, MatrixView phi, std::span<const double> pi) {
  Matrix mean(at(mdp.states), phi.cols());
  for (std::size_t row = 0; row < phi.rows(); ++row)
    for (std::size_t c = 0; c < phi.cols(); ++c)
      mean(row / at(mdp.actions), c) += pi[row] * phi(row, c);
  return multiply(matrix("P", mdp.P, mdp.pairs(), mdp.states), mean);
}

// W phi
Matrix weighed(std::span<const double> w, MatrixView phi) {
  Matrix weighted = phi;
  for (std::size_t row = 0; row < phi.rows(); ++row)
    for (double& x : weighted.row(row)) x *= w[row];
  return weighted;
}

// phi - gamma next
Matrix gap(MatrixView phi, double gamma, const Matrix& next) {
  Matrix gap = phi;
  for (std::size_t i = 0; i < gap.all().size(); ++i) gap.all()[i] -= gamma * next.all()[i];
  return gap;
}

// phi' W (phi - gamma next) x = phi' W r; none if that has no unique solution.
std::optional<Vector> fixed_point(MatrixView phi, const Matrix& next, std::span<const double> w,
                                  std::span<const double> r, double gamma) {
  const Matrix weighted = weighed(w, phi),
               M = multiply(transposed(weighted), gap(phi, gamma, next));
  Vector x(M.cols());
  if (solve_full_pivoting(M, multiply(transposed(weighted), r), x) < x.size()) return {};
  return x;
}

[[noreturn]] void refuse_features(const Basis& basis, std::span<const double> weights) {
  throw BadInput(fmt::format(
      "the projected fixed point is not unique: the {} features are dependent on the {} rows of "
      "positive weight",
      basis.dim, weights.size() - unvisited(weights).size()));
}

// The law of (s, a) while the policy acts.
std::vector<double> pair_law(const Mdp& mdp, std::span<const double> pi) {
  const std::vector<double> mu = stationary(under_policy(mdp, pi));
  std::vector<double> law(pi.begin(), pi.end());
  for (int row = 0; row < mdp.pairs(); ++row) law[at(row)] *= mu[at(row / mdp.actions)];
  return law;
}

}  // namespace

void check_kernel(std::string_view name, int rows, int cols, std::span<const double> P) {
  if (rows < 1 || cols < 1 || P.size() != at(rows) * at(cols))
    throw BadInput(fmt::format("{} has {} entries, not {} rows of {}", name, P.size(), rows, cols));
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < cols; ++c) {
      const double p = P[at(r) * at(cols) + at(c)];
      if (!std::isfinite(p) || p < 0)
        throw BadInput(
            fmt::format("{}: entry {} of row {} is {}, not a probability", name, c, r, p));
      sum += p;
    }
    if (std::abs(sum - 1) > 1e-9)
      throw BadInput(fmt::format("{}: row {} sums to {}, not to 1", name, r, sum));
  }
}

void check_chain(std::string_view name, const Chain& chain) {
  check_kernel(fmt::format("{}: P", name), chain.states, chain.states, chain.P);
}

void check_mdp(std::string_view name, const Mdp& mdp) {
  if (mdp.states < 1 || mdp.actions < 1)
    throw BadInput(fmt::format("{} has {} states and {} actions, but needs one of each at least",
                               name, mdp.states, mdp.actions));
  check_gamma(name, mdp.gamma);
  check_kernel(fmt::format("{}: P", name), mdp.pairs(), mdp.states, mdp.P);
  if (mdp.R.size() != at(mdp.pairs()))
    throw BadInput(fmt::format("{}: R has {} entries, not {} states of {} actions", name,
                               mdp.R.size(), mdp.states, mdp.actions));
  for (int row = 0; row < mdp.pairs(); ++row)
    if (!std::isfinite(mdp.R[at(row)]))
      throw BadInput(fmt::format("{}: R of state {}, action {} is {}, not a finite number", name,
                                 row / mdp.actions, row % mdp.actions, mdp.R[at(row)]));
}

// Grassmann, Taksar and Heyman 1985: states leave the chain one by one, without a subtraction.
std::vector<double> stationary(const Chain& chain) {
  check_chain("chain", chain);
  const std::vector<int> states = recurrent(chain);
  const std::size_t n = states.size();
  Matrix P(n, n);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t c = 0; c < n; ++c)
      P(r, c) = chain.P[at(states[r]) * at(chain.states) + at(states[c])];
  for (std::size_t k = n - 1; k > 0; --k) {
    const double leaves = sum(P.row(k).first(k));
    for (std::size_t r = 0; r < k; ++r) {
      P(r, k) /= leaves;
      for (std::size_t c = 0; c < k; ++c) P(r, c) += P(r, k) * P(k, c);
    }
  }
  Vector law(n);
  law[0] = 1;
  for (std::size_t k = 1; k < n; ++k)
    for (std::size_t r = 0; r < k; ++r) law[k] += law[r] * P(r, k);
  const double total = sum(law);
  std::vector<double> all(at(chain.states), 0.0);
  for (std::size_t r = 0; r < n; ++r) all[at(states[r])] = law[r] / total;
  return all;
}

std::vector<int> unvisited(std::span<const double> law) {
  std::vector<int> states;
  for (std::size_t s = 0; s < law.size(); ++s)
    if (law[s] == 0) states.push_back(static_cast<int>(s));
  return states;
}

std::vector<double> chain_values(const Chain& chain, std::span<const double> r, double gamma) {
  check_chain("chain", chain);
  check_gamma("chain", gamma);
  check_finite("rewards", r);
  const int n = chain.states;
  return solve(gap(Matrix::identity(at(n)), gamma, matrix("P", chain.P, n, n)), vector("r", r, n));
}

Chain under_policy(const Mdp& mdp, std::span<const double> pi) {
  check_kernel("policy", mdp.states, mdp.actions, pi);
  expect_size("P", mdp.P.size(), std::int64_t{mdp.pairs()} * mdp.states);
  const std::size_t S = at(mdp.states), A = at(mdp.actions);
  Chain chain{mdp.states, std::vector<double>(S * S)};
  for (std::size_t s = 0; s < S; ++s)
    multiply(transposed({mdp.P.data() + s * A * S, A, S}), pi.subspan(s * A, A),
             std::span(chain.P).subspan(s * S, S));
  return chain;
}

Chain pairs_under_policy(const Mdp& mdp, std::span<const double> pi) {
  check_kernel("policy", mdp.states, mdp.actions, pi);
  Chain chain{mdp.pairs(), {}};
  for (double p : mdp.P) {
    const std::size_t next = chain.P.size() / at(mdp.actions) % at(mdp.states);
    for (std::size_t a = 0; a < at(mdp.actions); ++a)
      chain.P.push_back(p * pi[next * at(mdp.actions) + a]);
  }
  return chain;
}

// In a run's hot loop: without the checks of the others.
double expected_return(const Mdp& mdp, std::span<const double> pi) {
  const std::size_t S = at(mdp.states), A = at(mdp.actions);
  Matrix M = Matrix::identity(S);  // I - gamma P of the policy
  Vector r(S);
  for (std::size_t row = 0; row < S * A; ++row) {
    r[row / A] += pi[row] * mdp.R[row];
    const double weight = mdp.gamma * pi[row];
    double* to = M.row(row / A).data();
    const double* P = mdp.P.data() + row * S;
    for (std::size_t next = 0; next < S; ++next) to[next] -= weight * P[next];
  }
  return sum(solve(M, r)) / mdp.states;
}

std::vector<double> policy_q(const Mdp& mdp, std::span<const double> pi) {
  check_mdp("mdp", mdp);
  const Chain chain = under_policy(mdp, pi);
  std::vector<double> r(at(mdp.states));
  for (int row = 0; row < mdp.pairs(); ++row)
    r[at(row / mdp.actions)] += pi[at(row)] * mdp.R[at(row)];
  const std::vector<double> v = chain_values(chain, r, mdp.gamma);
  return plus(vector("R", mdp.R, mdp.pairs()), mdp.gamma,
              multiply(matrix("P", mdp.P, mdp.pairs(), mdp.states), v));
}

// |Q_k+1 - Q*| is at most gamma |Q_k - Q*|, and at most gamma / (1 - gamma) |Q_k+1 - Q_k|. The
// first bound ends the iteration where rounding keeps the second from getting there.
std::vector<double> value_iteration(const Mdp& mdp, double tolerance) {
  check_mdp("mdp", mdp);
  if (!(tolerance > 0))
    throw BadInput(fmt::format("tolerance = {} is not allowed: it must be above 0", tolerance));
  const MatrixView P = matrix("P", mdp.P, mdp.pairs(), mdp.states);
  const std::size_t A = at(mdp.actions);
  Vector Q(at(mdp.pairs())), best(at(mdp.states));
  for (double bound = largest(mdp.R) / (1 - mdp.gamma);; bound *= mdp.gamma) {
    for (std::size_t s = 0; s < best.size(); ++s)
      best[s] = *std::max_element(Q.data() + s * A, Q.data() + (s + 1) * A);
    Vector next = plus(mdp.R, mdp.gamma, multiply(P, best));
    const double moved = largest(plus(next, -1, Q));
    Q = std::move(next);
    if (mdp.gamma * std::min(bound, moved / (1 - mdp.gamma)) <= tolerance) return Q;
  }
}

// Howard's. An action is changed only for one that is better beyond rounding, so it ends.
std::vector<double> policy_iteration(const Mdp& mdp) {
  check_mdp("mdp", mdp);
  std::vector<int> action(at(mdp.states), 0);
  for (;;) {
    std::vector<double> pi(at(mdp.pairs()), 0.0);
    for (int s = 0; s < mdp.states; ++s) pi[at(s * mdp.actions + action[at(s)])] = 1;
    std::vector<double> q = policy_q(mdp, pi);
    const double rounding = 1e-13 * largest(q) / (1 - mdp.gamma);
    bool changed = false;
    for (int s = 0; s < mdp.states; ++s) {
      const double* row = q.data() + at(s) * at(mdp.actions);
      const int best = static_cast<int>(std::max_element(row, row + mdp.actions) - row);
      if (row[best] > row[action[at(s)]] + rounding) action[at(s)] = best, changed = true;
    }
    if (!changed) return q;
  }
}

void softmax(std::span<const double> q, double temperature, std::span<double> pi) {
  const double top = *std::max_element(q.begin(), q.end());
  double sum = 0;
  for (std::size_t a = 0; a < q.size(); ++a) sum += pi[a] = std::exp((q[a] - top) / temperature);
  for (double& p : pi) p /= sum;
}

std::vector<double> softmax_policy(int actions, std::span<const double> q, double temperature) {
  check_temperature(temperature);
  std::vector<double> pi(q.size());
  const std::size_t n = at(actions);
  for (std::size_t row = 0; row < q.size(); row += n)
    softmax(q.subspan(row, n), temperature, std::span(pi).subspan(row, n));
  return pi;
}

std::vector<double> project(const Basis& basis, std::span<const double> weights,
                            std::span<const double> values) {
  const MatrixView phi = features(basis);
  check_weights(weights);
  check_finite("values", values);
  expect_size("weights", weights.size(), basis.rows);
  expect_size("values", values.size(), basis.rows);
  Vector root, scaled;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    root.push_back(std::sqrt(weights[row]));
    scaled.push_back(root[row] * values[row]);
  }
  Vector x(at(basis.dim));
  const std::size_t rank = solve_least_squares(weighed(root, phi), scaled, x);
  if (rank < x.size())
    throw BadInput(
        fmt::format("the projection is not unique: the {} features have rank {} on the {} rows of "
                    "positive weight",
                    basis.dim, rank, weights.size() - unvisited(weights).size()));
  return x;
}

std::vector<double> td_matrix(const Basis& basis, std::span<const double> weights,
                              const Chain& chain, double gamma) {
  const MatrixView phi = features(basis);
  check_weights(weights);
  check_chain("chain", chain);
  check_gamma("TD", gamma);
  const Matrix next = multiply(matrix("P", chain.P, basis.rows, basis.rows), phi);
  return multiply(transposed(weighed(vector("weights", weights, basis.rows), phi)),
                  gap(phi, gamma, next))
      .all();
}

std::vector<double> projected_fixed_point(const Basis& basis, std::span<const double> weights,
                                          const Chain& chain, std::span<const double> r,
                                          double gamma) {
  const MatrixView phi = features(basis);
  check_weights(weights);
  check_chain("chain", chain);
  check_finite("rewards", r);
  check_gamma("TD", gamma);
  const std::optional<Vector> x =
      fixed_point(phi, multiply(matrix("P", chain.P, basis.rows, basis.rows), phi),
                  vector("weights", weights, basis.rows), vector("r", r, basis.rows), gamma);
  if (!x) refuse_features(basis, weights);
  return *x;
}

namespace {

// The map whose fixed point is sought: the way from x to the projected fixed point under the policy
// of x.
class SarsaMap {
 public:
  SarsaMap(const Mdp& mdp, const Basis& basis, double temperature)
      : mdp_(mdp), phi_(features(basis)), temperature_(temperature) {}

  // None where the policy hardly ever takes some actions and the fixed point is lost in rounding.
  std::optional<Vector> way(const Vector& x) const {
    const std::vector<double> pi = softmax_policy(mdp_.actions, multiply(phi_, x), temperature_);
    // Features that represent every Q leave nothing to weigh, however rarely a pair is met.
    const std::vector<double> law = phi_.rows() == phi_.cols()
                                        ? std::vector<double>(at(mdp_.pairs()), 1.0)
                                        : pair_law(mdp_, pi);
    std::optional<Vector> to =
        fixed_point(phi_, next_features(mdp_, phi_, pi), vector("law", law, mdp_.pairs()),
                    vector("R", mdp_.R, mdp_.pairs()), mdp_.gamma);
    if (to) *to = plus(*to, -1, x);
    return to;
  }

  // Where the way vanishes if it is linear near x. None where it does not vanish, or is lost.
  std::optional<Vector> newton(const Vector& x, const Vector& here) const {
    Matrix J(x.size(), x.size());
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double h = 1e-6 * (1 + std::abs(x[c]));
      Vector aside = x;
      aside[c] += h;
      const std::optional<Vector> there = way(aside);
      if (!there) return {};
      for (std::size_t r = 0; r < x.size(); ++r) J(r, c) = ((*there)[r] - here[r]) / h;
    }
    const Vector to = plus(x, -1, solve(J, here));
    const bool finite =
        std::all_of(to.begin(), to.end(), [](double v) { return std::isfinite(v); });
    return finite ? std::optional(to) : std::nullopt;
  }

 private:
  const Mdp& mdp_;
  MatrixView phi_;
  double temperature_;
};

}  // namespace

// From 0, x moves by `step` of its way; the step shrinks when the way turns round (at low
// temperature the policies answer each other in turns) or is lost. Newton's steps, tried now and
// then and kept while they are short and halve the way, finish what that does slowly.
std::vector<double> sarsa_fixed_point(const Mdp& mdp, const Basis& basis, double temperature) {
  constexpr int kCycles = 100, kSteps = 50;
  constexpr double kTolerance = 1e-12;
  check_mdp("mdp", mdp);
  check_temperature(temperature);
  expect_size("features", basis.phi.size(), std::int64_t{mdp.pairs()} * basis.dim);
  const SarsaMap map(mdp, basis, temperature);
  Vector x(at(basis.dim));
  const std::optional<Vector> first = map.way(x);
  if (!first) refuse_features(basis, std::vector<double>(at(mdp.pairs()), 1.0));
  Vector way = *first;
  const auto done = [&] { return largest(way) <= kTolerance * (1 + largest(x)); };
  double step = 1;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    for (int k = 0; k < kSteps && !done(); ++k) {
      const Vector there = plus(x, step, way);
      const std::optional<Vector> next = map.way(there);
      if (!next) {
        step /= 2;
        continue;
      }
      x = there;
      step = dot(*next, way) < 0 ? std::max(step / 2, 0.01) : std::min(step * 1.1, 1.0);
      way = *next;
    }
    while (!done()) {
      const std::optional<Vector> there = map.newton(x, way);
      if (!there || largest(plus(*there, -1, x)) > 0.1 * (1 + largest(x))) break;
      const std::optional<Vector> next = map.way(*there);
      if (!next || largest(*next) > largest(way) / 2) break;
      x = *there;
      way = *next;
    }
    if (done()) return x;
  }
  throw Failure(fmt::format(
      "no fixed point of SARSA at temperature {}: after {} steps x still moves by {:.2g}",
      temperature, kCycles * kSteps, largest(way)));
}

}  // namespace affpcl
