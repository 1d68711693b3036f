// Finite Markov chains and decision processes, solved exactly: what the truth of TD and SARSA is
// made of (sec:td). Row major throughout. A pair (s, a) is row s * actions + a.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "affpcl/random/streams.h"

namespace affpcl {

struct Chain {
  int states = 0;
  std::vector<double> P;  // [states][states], rows sum to one
};

struct Mdp {
  int states = 0, actions = 0;
  std::vector<double> P;  // [states][actions][states]
  std::vector<double> R;  // [states][actions], expected reward
  double gamma = 0;       // in [0, 1)
  int pairs() const { return states * actions; }
};

// Linear values phi(row)' x of states or of pairs.
struct Basis {
  int rows = 0, dim = 0;
  std::vector<double> phi;  // [rows][dim]
};

// Each throws BadInput: one sentence that names `name`, the entry, its value and what is allowed.
void check_kernel(std::string_view name, int rows, int cols, std::span<const double> P);
void check_chain(std::string_view name, const Chain& chain);
void check_mdp(std::string_view name, const Mdp& mdp);

// --- chains

// The stationary law, each entry to full relative precision; 0 where the chain does not stay.
// BadInput if there is more than one (two or more closed classes; it names a state of two of them).
std::vector<double> stationary(const Chain& chain);
std::vector<int> unvisited(std::span<const double> law);  // states of probability 0

// V = r + gamma P V.
std::vector<double> chain_values(const Chain& chain, std::span<const double> r, double gamma);

// --- decision processes. A policy pi is [states][actions], q likewise.

Chain under_policy(const Mdp& mdp, std::span<const double> pi);        // over states
Chain pairs_under_policy(const Mdp& mdp, std::span<const double> pi);  // over pairs (s, a)
std::vector<double> policy_q(const Mdp& mdp, std::span<const double> pi);
// The expected discounted return of a policy, the first state being uniform. Unchecked.
double expected_return(const Mdp& mdp, std::span<const double> pi);
std::vector<double> value_iteration(const Mdp& mdp, double tolerance);  // |Q - Q*| <= tolerance
std::vector<double> policy_iteration(const Mdp& mdp);                   // Q*

// pi(a) ∝ exp(q(a) / temperature)
void softmax(std::span<const double> q, double temperature, std::span<double> pi);
std::vector<double> softmax_policy(int actions, std::span<const double> q, double temperature);

// --- linear values. W is the diagonal of `weights`, one per row, all >= 0.

// argmin over x of |phi x - values|_W. BadInput if the weighted features are dependent.
std::vector<double> project(const Basis& basis, std::span<const double> weights,
                            std::span<const double> values);

// phi' W (phi - gamma P phi), [dim][dim]: the mean of A in eq:bellman.
std::vector<double> td_matrix(const Basis& basis, std::span<const double> weights,
                              const Chain& chain, double gamma);

// The fixed point of TD(0): td_matrix x = phi' W r. Rows may be states or pairs.
std::vector<double> projected_fixed_point(const Basis& basis, std::span<const double> weights,
                                          const Chain& chain, std::span<const double> r,
                                          double gamma);

// What SARSA tends to while it acts by softmax(phi x / temperature): x is the projected fixed point
// under its own policy, to 1e-12. Failure if iteration from 0 does not get there.
std::vector<double> sarsa_fixed_point(const Mdp& mdp, const Basis& basis, double temperature);

// --- generated at random (mdp_generate.cc). An agent's draws do not depend on how far it departs
// from the base, so settings of a sweep differ by that alone.

inline constexpr std::int64_t kNoAgent = -1;  // whose draws are the base

std::vector<double> uniform_kernel(const Key& key, std::int64_t agent, int rows, int cols);
std::vector<double> dirichlet_kernel(const Key& key, std::int64_t agent, int rows, int cols,
                                     double concentration);
// ∝ base (1 + delta U[-1, 1]), delta in [0, 1]
std::vector<double> perturbed_kernel(const Key& key, std::int64_t agent,
                                     std::span<const double> base, int cols, double delta);
// (1 - h) base + h own, h in [0, 1]
std::vector<double> mixed_kernel(std::span<const double> base, std::span<const double> own,
                                 double h);
std::vector<double> uniform_rewards(const Key& key, std::int64_t agent, int rows);
// base (1 + delta N(0, 1))
std::vector<double> perturbed_rewards(const Key& key, std::int64_t agent,
                                      std::span<const double> base, double delta);
// N(0, I) scaled to length 1
Basis random_basis(const Key& key, int rows, int dim);

}  // namespace affpcl
