// Finite systems at chosen heterogeneity.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "affpcl/math/dense.h"
#include "affpcl/problem/tabular.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// A matrix of norm one with directions drawn for (state, purpose).
Matrix random_unit_matrix(const Key& key, int state, Purpose purpose, int d) {
  Matrix N(at(d), at(d));
  normals_of(key, state, purpose, N.all());
  const double length = operator_norm(N);
  for (double& x : N.all()) x /= length;
  return N;
}

// Turns every pair of coordinates by `angle` degrees; an odd last one stays.
Matrix rotation(int d, double angle) {
  Matrix R = Matrix::identity(at(d));
  const double a = angle * std::numbers::pi / 180;
  for (std::size_t r = 0; r + 1 < at(d); r += 2) {
    R(r, r) = R(r + 1, r + 1) = std::cos(a);
    R(r, r + 1) = -std::sin(a);
    R(r + 1, r) = std::sin(a);
  }
  return R;
}

Vector random_unit_vector(const Key& key, std::int64_t agent, Purpose purpose, int d) {
  Vector v(at(d));
  normals_of(key, agent, purpose, v);
  const double length = norm(v);
  for (double& x : v) x /= length;
  return v;
}

// Random weights that sum to one: squared exponentials, so that some are large and some small.
std::vector<double> random_law(const Key& key, std::int64_t agent, int states) {
  std::vector<double> q(at(states));
  for (int s = 0; s < states; ++s)
    q[at(s)] = std::pow(
        -std::log(uniform(key, agent, Purpose::kEnvironment, static_cast<std::uint32_t>(s))), 2);
  const double sum = std::accumulate(q.begin(), q.end(), 0.0);
  for (double& x : q) x /= sum;
  return q;
}

// Half of it even, so that no state is rare.
std::vector<double> evened(std::vector<double> law) {
  for (double& x : law) x = 0.5 * x + 0.5 / static_cast<double>(law.size());
  return law;
}

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// The states on which agent i may differ, in random order.
std::vector<int> support(const Key& key, std::int64_t i, int states, double share) {
  std::vector<int> all(at(states));
  std::iota(all.begin(), all.end(), 0);
  std::sort(all.begin(), all.end(), [&](int a, int b) {
    return uniform(key, i, Purpose::kSupport, static_cast<std::uint32_t>(a)) <
           uniform(key, i, Purpose::kSupport, static_cast<std::uint32_t>(b));
  });
  all.resize(at(static_cast<int>(std::ceil(share * static_cast<double>(states)))));
  return all;
}

// mu^i = (1 - delta) base + delta q^i; on its own random subset of states the agent shares out the
// subset's mass by a law of its own.
std::vector<double> mixture_law(const Key& key, const Tabular::Config& c, std::int64_t i,
                                const std::vector<double>& base) {
  const std::vector<int> states = support(key, i, c.states, c.sparsity);
  const std::vector<double> law = random_law(key, i, c.states);
  double mass = 0, own = 0;
  for (int s : states) mass += base[at(s)], own += law[at(s)];
  std::vector<double> mu = base;
  for (int s : states)
    mu[at(s)] = (1 - c.delta_env) * base[at(s)] + c.delta_env * mass * law[at(s)] / own;
  return mu;
}

// The agents of a pair shift the same mass in opposite directions; one without partner shifts none.
std::vector<double> exchange_law(const Key& key, const Tabular::Config& c, std::int64_t i,
                                 const std::vector<double>& base) {
  const std::int64_t first = c.first_central ? 1 : 0, pair = (i - first) / 2;
  std::vector<double> mu = base;
  if (first + 2 * pair + 1 >= c.agents) return mu;
  const std::vector<int> states = support(key, pair, c.states, c.sparsity);
  for (std::size_t k = 0; k + 1 < states.size(); k += 2) {
    const std::size_t a = at(states[k]), b = at(states[k + 1]);
    const double mass =
        ((i - first) % 2 == 0 ? c.delta_env : -c.delta_env) * std::min(base[a], base[b]);
    mu[a] += mass, mu[b] -= mass;
  }
  return mu;
}

// The first agent's theta in the free-ride family: with mu^1 = mu^0, theta^1 = theta^c_* means
// Phibar^0 theta = mean over the others of Phibar^j theta^j.
Vector central_theta(const FiniteSystem& sys, const std::vector<double>& centre) {
  const std::size_t d = at(sys.d), others = sys.theta.size() / d;
  Matrix Phi0(d, d);
  Vector b0(d), b(d);
  for (std::size_t s = 0; s < at(sys.states); ++s) {
    const MatrixView Phi(sys.Phi.data() + s * d * d, d, d);
    for (std::size_t r = 0; r < d * d; ++r) Phi0.all()[r] += centre[s] * Phi.all()[r];
    for (std::size_t j = 0; j < others; ++j) {
      const double mu = sys.mu[j * at(sys.states) + s];
      if (mu == 0) continue;
      multiply(Phi, {sys.theta.data() + j * d, d}, b);
      for (std::size_t r = 0; r < d; ++r) b0[r] += mu / static_cast<double>(others) * b[r];
    }
  }
  return solve(Phi0, b0);
}

// I + share M
Matrix around_identity(double share, Matrix M) {
  for (double& x : M.all()) x *= share;
  for (std::size_t r = 0; r < M.rows(); ++r) M(r, r) += 1;
  return M;
}

// A(s) and Phi(s) around the identity.
void add_random_system(const Key& key, const Tabular::Config& c, FiniteSystem& sys) {
  sys.d = sys.k = c.dim;
  for (int s = 0; s < sys.states; ++s) {
    const Matrix unturned =
        around_identity(c.noise_A, random_unit_matrix(key, s, Purpose::kSystemA, c.dim));
    append(sys.A, multiply(rotation(c.dim, s % 2 == 0 ? c.angle : -c.angle), unturned).all());
    Matrix Phi =
        around_identity(c.noise_Phi, random_unit_matrix(key, s, Purpose::kSystemPhi, c.dim));
    for (double& x : Phi.all()) x /= 1 + c.noise_Phi;
    append(sys.Phi, Phi.all());
  }
}

void add_law_system(FiniteSystem& sys) {
  sys.d = sys.states, sys.k = 1;
  for (int s = 0; s < sys.states; ++s)
    for (int r = 0; r < sys.d; ++r) {
      sys.Phi.push_back(r == s ? 1 : 0);
      for (int c = 0; c < sys.d; ++c) sys.A.push_back(r == c ? 1 : 0);
    }
}

// The others share what the first agent takes or leaves, so mu^0 is uniform whatever m is.
void add_two_point_laws(const Tabular::Config& c, std::uint32_t m, FiniteSystem& sys) {
  for (std::int64_t i = 0; i < c.agents; ++i) {
    const double share = i == 0 ? 1 : -1 / static_cast<double>(c.agents - 1);
    for (int s = 0; s < sys.states; ++s) {
      const double sign = (static_cast<std::uint32_t>(s) + m) % 2 == 0 ? 1 : -1;
      sys.mu.push_back((1 + 2 * c.delta_env * share * sign) / sys.states);
    }
  }
  sys.p = 2;
  for (int s = 0; s < sys.states; ++s) append(sys.psi, {1, s % 2 == 0 ? 1.0 : -1.0});
}

}  // namespace

FiniteSystem Tabular::generate(const Config& c, std::uint64_t seed, std::uint32_t replicate) {
  const Key key{seed, replicate, 0};
  const bool free_ride = c.family == Family::kFreeRide && c.agents > 1;
  FiniteSystem sys;
  sys.agents = c.agents;
  sys.states = free_ride ? c.states * static_cast<int>(c.agents - 1) : c.states;
  if (c.system == System::kLaw) {
    add_law_system(sys);
  } else {
    add_random_system(key, c, sys);
  }
  const Vector theta_base =
      c.system == System::kLaw ? Vector{1} : random_unit_vector(key, 0, Purpose::kTheta, sys.k);
  const auto own_theta = [&](std::int64_t i) {
    Vector theta = random_unit_vector(key, i, Purpose::kObjective, sys.k);
    for (std::size_t r = 0; r < theta.size(); ++r)
      theta[r] = theta_base[r] + c.delta_obj * theta[r];
    return theta;
  };

  if (free_ride) {
    std::vector<double> centre(at(sys.states), 0.0);
    for (std::int64_t j = 1; j < c.agents; ++j) {
      std::vector<double> mu(at(sys.states), 0.0);
      const std::vector<double> law = evened(random_law(key, j, c.states));
      for (int s = 0; s < c.states; ++s) {
        const std::size_t state = at((j - 1) * c.states + s);
        mu[state] = law[at(s)];
        centre[state] = law[at(s)] / static_cast<double>(c.agents - 1);
      }
      append(sys.mu, mu);
      append(sys.theta, own_theta(j));
    }
    const Vector theta = central_theta(sys, centre);
    sys.mu.insert(sys.mu.begin(), centre.begin(), centre.end());
    sys.theta.insert(sys.theta.begin(), theta.begin(), theta.end());
    return sys;
  }

  const std::vector<double> base = evened(random_law(key, -1, c.states));  // of no agent
  const bool two_point = c.family == Family::kTwoPoint;
  if (two_point) add_two_point_laws(c, replicate, sys);
  for (std::int64_t i = 0; i < c.agents; ++i) {
    const bool central = i == 0 && c.first_central;
    if (!two_point)
      append(sys.mu, central || c.delta_env == 0     ? base
                     : c.family == Family::kExchange ? exchange_law(key, c, i, base)
                                                     : mixture_law(key, c, i, base));
    append(sys.theta, central ? theta_base : own_theta(i));
  }
  return sys;
}

}  // namespace affpcl
