// Chains and decision processes: small ones solved by hand, random ones by the equations they must
// satisfy.
#include "affpcl/problem/mdp.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/gamma.hpp>

#include "affpcl/base/error.h"
#include "tests/algebra.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Matrix mat(const Numbers& x, std::size_t rows) {
  return MatrixView(x.data(), rows, x.size() / rows);
}

double distance(const Numbers& a, const Numbers& b) {
  EXPECT_EQ(a.size(), b.size());
  return largest(a - b);
}

template <class F>
void refused(F f, const std::string& what) {
  std::string said = "accepted";
  try {
    f();
  } catch (const BadInput& e) {
    said = e.what();
  }
  EXPECT_NE(said.find(what), std::string::npos) << said << "\n  wanted: " << what;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

// The decision process of the study: 10 states, 5 actions.
Mdp study_mdp(std::uint64_t seed, double gamma) {
  const Key key{seed, 0, 0};
  return {10, 5, uniform_kernel(key, kNoAgent, 50, 10), uniform_rewards(key, kNoAgent, 50), gamma};
}

Chain dirichlet_chain(std::uint64_t seed, int states) {
  return {states, dirichlet_kernel({seed, 0, 0}, kNoAgent, states, states, .3)};
}

Numbers random_policy(std::uint64_t seed) { return uniform_kernel({seed, 1, 0}, 0, 10, 5); }

Basis identity(int rows) {
  Basis basis{rows, rows, Numbers(static_cast<std::size_t>(rows) * static_cast<std::size_t>(rows))};
  for (int r = 0; r < rows; ++r) basis.phi[static_cast<std::size_t>(r * rows + r)] = 1;
  return basis;
}

// --- chains

TEST(Chains, TwoStatesByHand) {
  // pi = (b, a) / (a + b) for P = [1-a a; b 1-b]
  EXPECT_LT(distance(stationary({2, {.9, .1, .3, .7}}), {.75, .25}), 1e-15);
  EXPECT_LT(distance(stationary({2, {0, 1, 1, 0}}), {.5, .5}), 1e-15);  // periodic
  EXPECT_EQ(stationary({1, {1}}), Numbers{1});
  // V0 = 1 + .5 V1, V1 = .5 V0
  EXPECT_LT(distance(chain_values({2, {0, 1, 1, 0}}, Numbers{1, 0}, .5), {4. / 3, 2. / 3}), 1e-15);
}

TEST(Chains, RareReturnsKeepFullPrecision) {
  const double a = 1e-14, b = 3e-200;
  const Numbers law = stationary({2, {1 - a, a, b, 1 - b}});
  EXPECT_NEAR(law[0] / (b / a), 1, 1e-14);
}

TEST(Chains, RandomLawsAreStationary) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const int n = 2 + static_cast<int>(seed % 30);
    const Chain chain = dirichlet_chain(seed, n);
    const Numbers law = stationary(chain);
    EXPECT_NEAR(sum(law), 1, 1e-14);
    EXPECT_GE(*std::min_element(law.begin(), law.end()), 0);
    EXPECT_LT(one_norm(transpose(mat(chain.P, law.size())) * law - law), 1e-12) << seed;
  }
}

TEST(Chains, TransientStatesGetNothing) {
  // 0 -> 1 -> {2, 3}, which keep each other
  const Numbers law = stationary({4, {.5, .5, 0, 0, 0, 0, .5, .5, 0, 0, 0, 1, 0, 0, 1, 0}});
  EXPECT_EQ(law, (Numbers{0, 0, .5, .5}));
  EXPECT_EQ(unvisited(law), (std::vector<int>{0, 1}));
  EXPECT_TRUE(unvisited(stationary({2, {.9, .1, .3, .7}})).empty());
}

TEST(Chains, TwoClosedClassesAreRefusedByName) {
  refused(
      [] {
        stationary({2, {1, 0, 0, 1}});
      },
      "no unique stationary law: it can stay for ever in a class with state 0 or in one with "
      "state 1");
  // 1 leads to both 0 and {2, 3}
  refused(
      [] {
        stationary({4, {1, 0, 0, 0, .5, 0, .5, 0, 0, 0, 0, 1, 0, 0, 1, 0}});
      },
      "a class with state 0 or in one with state 2");
}

TEST(Chains, BadKernelsAreRefusedByName) {
  refused([] { stationary({2, {.9, .2, .3, .7}}); }, "chain: P: row 0 sums to 1.1, not to 1");
  refused(
      [] {
        stationary({2, {.9, .1, 1.5, -.5}});
      },
      "chain: P: entry 1 of row 1 is -0.5, not a probability");
  refused(
      [] {
        stationary({2, {kNan, .1, .3, .7}});
      },
      "chain: P: entry 0 of row 0 is nan, not a probability");
  refused([] { stationary({2, {1, 0, 1}}); }, "chain: P has 3 entries, not 2 rows of 2");
  refused([] { check_kernel("P", 0, 2, {}); }, "P has 0 entries, not 0 rows of 2");
  refused([] { chain_values({1, {1}}, Numbers{1}, 1); }, "gamma = 1 is not allowed");
  refused([] { chain_values({1, {1}}, Numbers{kNan}, .5); }, "rewards: entry 0 is nan");
}

// --- decision processes

TEST(Mdps, TwoStatesByHand) {
  // Action 0 stays, action 1 moves; staying in state 1 pays 1.
  const Mdp mdp{2, 2, {1, 0, 0, 1, 0, 1, 1, 0}, {0, 0, 1, 0}, .5};
  // Q*(1,0) = 2, Q*(0,1) = .5 * 2, Q*(0,0) = .5 * 1, Q*(1,1) = .5 * 1
  const Numbers best{.5, 1, 2, .5};
  EXPECT_LT(distance(policy_iteration(mdp), best), 1e-14);
  EXPECT_LT(distance(value_iteration(mdp, 1e-13), best), 1e-13);
  // Always move: q(s, 1) = 0, q(s, 0) = R(s, 0) + 0
  EXPECT_LT(distance(policy_q(mdp, Numbers{0, 1, 0, 1}), {0, 0, 1, 0}), 1e-15);
  EXPECT_EQ(under_policy(mdp, Numbers{.25, .75, .5, .5}).P, (Numbers{.25, .75, .5, .5}));
  EXPECT_EQ(pairs_under_policy(mdp, Numbers{.25, .75, .5, .5}).P,
            (Numbers{.25, .75, 0, 0, 0, 0, .5, .5, 0, 0, .5, .5, .25, .75, 0, 0}));
}

TEST(Mdps, ValueIterationIsPolicyIteration) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (double gamma : {0., .1, .9, .99}) {
      const Mdp mdp = study_mdp(seed, gamma);
      EXPECT_LT(distance(value_iteration(mdp, 1e-10), policy_iteration(mdp)), 1e-9)
          << seed << " " << gamma;
    }
}

TEST(Mdps, ValueIterationKeepsItsToleranceAndEnds) {
  const Mdp mdp = study_mdp(1, .9);
  const Numbers best = policy_iteration(mdp);
  for (double tolerance : {1., 1e-3, 1e-6}) {
    const double error = distance(value_iteration(mdp, tolerance), best);
    EXPECT_LE(error, tolerance);
    EXPECT_GT(error, 1e-12);
  }
  EXPECT_LT(distance(value_iteration(mdp, 1e-300), best), 1e-12);
}

TEST(Mdps, PolicyValuesSatisfyBellman) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Mdp mdp = study_mdp(seed, .9);
    const Numbers pi = random_policy(seed), q = policy_q(mdp, pi);
    const Chain pairs = pairs_under_policy(mdp, pi);
    EXPECT_NO_THROW(check_chain("pairs", pairs));
    EXPECT_LT(largest(mdp.R + .9 * (mat(pairs.P, 50) * q) - q), 1e-12);
    EXPECT_LT(distance(q, chain_values(pairs, mdp.R, .9)), 1e-12);
    // The law of pairs is that of states times the policy.
    const Numbers law = stationary(pairs), mu = stationary(under_policy(mdp, pi));
    for (std::size_t row = 0; row < 50; ++row) EXPECT_NEAR(law[row], mu[row / 5] * pi[row], 1e-14);
  }
}

TEST(Mdps, BestValuesAreAboveEveryPolicy) {
  const Mdp mdp = study_mdp(3, .9);
  const Numbers best = policy_iteration(mdp);
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (double gap : best - policy_q(mdp, random_policy(seed))) EXPECT_GE(gap, 0);
  const Numbers greedy = softmax_policy(5, best, 1e-6);
  EXPECT_LT(distance(policy_q(mdp, greedy), best), 1e-9);
}

TEST(Mdps, Softmax) {
  Numbers pi(2);
  softmax(Numbers{0, std::log(3.)}, 1, pi);
  EXPECT_LT(distance(pi, {.25, .75}), 1e-15);
  softmax(Numbers{0, 10 * std::log(3.)}, 10, pi);  // the temperature divides
  EXPECT_LT(distance(pi, {.25, .75}), 1e-15);
  softmax(Numbers{-1e6, 1e6}, 1, pi);
  EXPECT_EQ(pi, (Numbers{0, 1}));
  EXPECT_EQ(softmax_policy(2, Numbers{5, 5, -1, -1}, 3), (Numbers{.5, .5, .5, .5}));
  refused([] { softmax_policy(1, Numbers{1}, 0); }, "temperature = 0 is not allowed");
}

TEST(Mdps, BadOnesAreRefusedByName) {
  const Mdp good = study_mdp(1, .1);
  EXPECT_NO_THROW(check_mdp("mdp", good));
  const auto with = [&](auto change, const std::string& what) {
    Mdp mdp = good;
    change(mdp);
    refused([&] { check_mdp("agent 3", mdp); }, "agent 3" + what);
    refused([&] { policy_iteration(mdp); }, "mdp" + what);
  };
  with([](Mdp& m) { m.gamma = 1; }, ": gamma = 1 is not allowed");
  with([](Mdp& m) { m.gamma = -.1; }, ": gamma = -0.1 is not allowed");
  with([](Mdp& m) { m.gamma = kNan; }, ": gamma = nan is not allowed");
  with([](Mdp& m) { m.R[7] = kNan; }, ": R of state 1, action 2 is nan, not a finite number");
  with([](Mdp& m) { m.R.pop_back(); }, ": R has 49 entries");
  with([](Mdp& m) { m.P[499] = kNan; }, ": P: entry 9 of row 49 is nan");
  with([](Mdp& m) { m.P[0] += .5; }, ": P: row 0 sums to 1.5, not to 1");
  with([](Mdp& m) { m.actions = 0; }, " has 10 states and 0 actions");
  refused([&] { under_policy(good, Numbers(50, .3)); }, "policy: row 0 sums to 1.5, not to 1");
  refused([&] { value_iteration(good, 0); }, "tolerance = 0 is not allowed");
}

// --- linear values

constexpr double kRounding = 100 * std::numeric_limits<double>::epsilon();

// The condition number of Phi'Phi, which a fixed point is solved with: rounding grows by it.
double condition(const Basis& basis) {
  const Matrix phi = mat(basis.phi, static_cast<std::size_t>(basis.rows));
  const Numbers values = symmetric_eigenvalues(multiply(transposed(phi), phi));
  return values.back() / values.front();
}

TEST(LinearValues, ATableOfFeaturesGivesTheValuesThemselves) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Chain chain = dirichlet_chain(seed, 8);
    const Numbers r = uniform_rewards({seed, 0, 0}, kNoAgent, 8);
    const Numbers law = stationary({8, uniform_kernel({seed, 0, 0}, kNoAgent, 8, 8)});
    const Numbers v = chain_values(chain, r, .9);
    EXPECT_LT(distance(projected_fixed_point(identity(8), law, chain, r, .9), v), 1e-10);
    EXPECT_LT(distance(project(identity(8), law, v), v), 1e-12);
    // Full rank is enough, whatever the features.
    const Basis basis = random_basis({seed, 0, 0}, 8, 8);
    const Numbers x = projected_fixed_point(basis, law, chain, r, .9);
    EXPECT_LT(largest(mat(basis.phi, 8) * x - v), kRounding * condition(basis)) << seed;
  }
}

TEST(LinearValues, TheFixedPointIsTheProjectionOfItsOwnBellmanUpdate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Chain chain{10, uniform_kernel({seed, 0, 0}, kNoAgent, 10, 10)};
    const Basis basis = random_basis({seed, 0, 0}, 10, 4);
    const Numbers law = stationary(chain), r = uniform_rewards({seed, 0, 0}, kNoAgent, 10);
    const Numbers x = projected_fixed_point(basis, law, chain, r, .5);
    const Numbers update = r + .5 * (mat(chain.P, 10) * (mat(basis.phi, 10) * x));
    EXPECT_LT(distance(project(basis, law, update), x), 1e-12);
    const Numbers A = td_matrix(basis, law, chain, .5);
    const Numbers b = transpose(mat(basis.phi, 10)) * times(law, r);
    EXPECT_LT(norm(mat(A, 4) * x - b), 1e-13);
  }
}

// sec:td: lambda^i >= (1 - gamma) lambda_min(E phi phi') for every chain at its stationary law.
TEST(LinearValues, MonotoneAtTheStationaryLaw) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    for (double gamma : {.1, .5, .95}) {
      const Chain chain = dirichlet_chain(seed, 10);
      const Basis basis = random_basis({seed, 0, 0}, 10, 4);
      const Numbers law = stationary(chain), A = td_matrix(basis, law, chain, gamma);
      const Matrix phi = mat(basis.phi, 10), second = transpose(phi) * diagonal(law) * phi;
      EXPECT_GE(smallest_symmetric(mat(A, 4)), (1 - gamma) * smallest_symmetric(second) - 1e-14)
          << seed << " " << gamma;
    }
}

TEST(LinearValues, DependentFeaturesAreRefused) {
  const Chain chain{2, {.5, .5, .5, .5}};
  const Basis twice{2, 2, {1, 1, 2, 2}};
  const Numbers even{.5, .5}, r{1, 2};
  refused([&] { projected_fixed_point(twice, even, chain, r, .5); },
          "the 2 features are dependent on the 2 rows of positive weight");
  refused([&] { project(twice, even, r); }, "the 2 features have rank 1 on the 2 rows");
  refused([&] { project(identity(2), Numbers{1, 0}, r); }, "rank 1 on the 1 rows");
  refused([&] { project(identity(2), Numbers{1, -1}, r); }, "weights: entry 1 is -1");
  refused([&] { project(identity(2), even, Numbers{1, kNan}); }, "values: entry 1 is nan");
  refused(
      [&] {
        projected_fixed_point({2, 1, {1, kNan}}, even, chain, r, .5);
      },
      "features: entry 1 is nan");
  refused([&] { projected_fixed_point(identity(2), even, chain, r, 1); }, "gamma = 1");
}

// Two states by hand: action 0 stays, action 1 leaves; rewards 1 for staying in state 0, else 0.
TEST(Mdps, ExpectedReturnByHand) {
  const Mdp mdp{2, 2, {1, 0, 0, 1, 0, 1, 1, 0}, {1, 0, 0, 0}, .5};
  EXPECT_NEAR(expected_return(mdp, Numbers{1, 0, 1, 0}), (2. + 0) / 2, 1e-15);  // stay, stay
  EXPECT_NEAR(expected_return(mdp, Numbers{1, 0, 0, 1}), (2. + 1) / 2, 1e-15);  // stay, leave
  // Even chances: V0 = (1 + (V0 + V1) / 2) / 2 and V1 = (V0 + V1) / 4.
  EXPECT_NEAR(expected_return(mdp, Numbers{.5, .5, .5, .5}), .5, 1e-15);
}

// x is the projected fixed point of the chain that its own policy makes.
double sarsa_residual(const Mdp& mdp, const Basis& basis, double temperature, const Numbers& x) {
  const Numbers q = mat(basis.phi, static_cast<std::size_t>(basis.rows)) * x,
                pi = softmax_policy(mdp.actions, q, temperature);
  const Chain pairs = pairs_under_policy(mdp, pi);
  return distance(projected_fixed_point(basis, stationary(pairs), pairs, mdp.R, mdp.gamma), x);
}

TEST(LinearValues, SarsaRestsAtItsFixedPoint) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Basis basis = random_basis({seed, 0, 0}, 50, 20);
    for (double gamma : {.1, .9})
      for (double temperature : {10., 1., .1}) {
        const Mdp mdp = study_mdp(seed, gamma);
        const Numbers x = sarsa_fixed_point(mdp, basis, temperature);
        // The search stops at 1e-12. A policy answers rounding by 1 / temperature, values by 1 / (1 - gamma).
        const double size = 1 + largest(x), answer = condition(basis) / (temperature * (1 - gamma));
        EXPECT_LT(sarsa_residual(mdp, basis, temperature, x), size * (2e-12 + kRounding * answer))
            << seed << " " << gamma << " " << temperature;
      }
  }
}

TEST(LinearValues, SarsaWithATableIsTheSoftmaxPolicysOwnValue) {
  const Mdp mdp = study_mdp(1, .9);
  const Numbers q = sarsa_fixed_point(mdp, identity(50), 1);
  EXPECT_LT(distance(policy_q(mdp, softmax_policy(5, q, 1)), q), 1e-10);
  // Cold, it is near the best: a softmax gives away at most (A - 1) temperature / e a step.
  const Numbers cold = sarsa_fixed_point(mdp, identity(50), .05);
  EXPECT_LT(distance(cold, policy_iteration(mdp)), .9 / .1 * 4 * .05 / std::exp(1.));
  // Colder, some pairs are hardly ever seen. Features that represent every Q have a fixed point
  // yet.
  const Numbers frozen = sarsa_fixed_point(mdp, identity(50), 1e-3);
  EXPECT_LT(distance(policy_q(mdp, softmax_policy(5, frozen, 1e-3)), frozen), 1e-10);
  const Basis twice{50, 2, Numbers(100, 1.)};
  refused([&] { sarsa_fixed_point(mdp, twice, 1); }, "the 2 features are dependent on the 50 rows");
}

// --- generators

TEST(MdpGenerators, KernelsAreKernels) {
  const Key key{5, 2, 0};
  const Numbers base = uniform_kernel(key, kNoAgent, 50, 10);
  EXPECT_NO_THROW(check_kernel("uniform", 50, 10, base));
  const Numbers dirichlet = dirichlet_kernel(key, 1, 10, 10, .3);
  EXPECT_NO_THROW(check_kernel("dirichlet", 10, 10, dirichlet));
  EXPECT_NO_THROW(check_kernel("thin", 10, 10, dirichlet_kernel(key, 1, 10, 10, .05)));
  for (double delta : {0., .2, 1.})
    EXPECT_NO_THROW(check_kernel("perturbed", 50, 10, perturbed_kernel(key, 3, base, 10, delta)));
  EXPECT_EQ(perturbed_kernel(key, 3, base, 10, 0), base);
  EXPECT_NE(perturbed_kernel(key, 3, base, 10, .5), perturbed_kernel(key, 4, base, 10, .5));
  const Numbers even(100, .1);
  EXPECT_EQ(mixed_kernel(even, dirichlet, 0), even);
  EXPECT_EQ(mixed_kernel(even, dirichlet, 1), dirichlet);
  EXPECT_NEAR(mixed_kernel(even, dirichlet, .5)[7], .05 + dirichlet[7] / 2, 1e-16);
  refused([&] { perturbed_kernel(key, 3, base, 10, 1.5); }, "delta = 1.5 is not allowed");
  refused([&] { mixed_kernel(even, dirichlet, kNan); }, "h = nan is not allowed");
  refused([&] { dirichlet_kernel(key, 1, 10, 10, 0); }, "concentration = 0 is not allowed");
}

TEST(MdpGenerators, PerturbationIsRelativeAndBounded) {
  const Key key{5, 2, 0};
  const Numbers base = uniform_kernel(key, kNoAgent, 50, 10);
  const Numbers own = perturbed_kernel(key, 3, base, 10, .2);
  for (std::size_t row = 0; row < 500; row += 10)
    for (std::size_t i = row; i < row + 10; ++i) {
      const double ratio = own[i] / base[i] / (own[row] / base[row]);
      EXPECT_GE(ratio, .8 / 1.2);
      EXPECT_LE(ratio, 1.2 / .8);
    }
  // R (1 + delta N): the draws do not depend on delta.
  const Numbers R = uniform_rewards(key, kNoAgent, 50);
  const Numbers half = perturbed_rewards(key, 3, R, .5), whole = perturbed_rewards(key, 3, R, 1);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(whole[i] - R[i], 2 * (half[i] - R[i]), 1e-14);
  EXPECT_EQ(perturbed_rewards(key, 3, R, 0), R);
}

// The second moment of 4000 Dirichlet(.3) rows of five: E p^2 = (1/5)^2 + (1/5)(4/5) / (5 * .3 +
// 1). The mean over the rows has a standard error of .00056; at 4.5 of it one seed in 150,000 would
// fail.
TEST(MdpGenerators, DirichletHasItsMoments) {
  const Numbers P = dirichlet_kernel({11, 0, 0}, 0, 4000, 5, .3);
  const double second = .16 / 2.5 + .04;
  EXPECT_NEAR(squared_norm(P) / 20'000, second, 4.5 * .00056);
  // One entry by hand: it is gamma_p_inv of its own uniform, over the row's sum.
  double sum = 0;
  for (std::uint32_t i = 0; i < 5; ++i)
    sum += boost::math::gamma_p_inv(.3, uniform({11, 0, 0}, 0, Purpose::kEnvironment, i));
  EXPECT_DOUBLE_EQ(
      P[2], boost::math::gamma_p_inv(.3, uniform({11, 0, 0}, 0, Purpose::kEnvironment, 2)) / sum);
}

TEST(MdpGenerators, FeaturesHaveLengthOne) {
  const Basis basis = random_basis({5, 2, 0}, 50, 20);
  const Matrix phi = mat(basis.phi, 50);
  for (std::size_t r = 0; r < 50; ++r) EXPECT_NEAR(norm(phi.row(r)), 1, 1e-15);
  EXPECT_EQ(basis.phi, random_basis({5, 2, 0}, 50, 20).phi);
  EXPECT_NE(basis.phi, random_basis({5, 3, 0}, 50, 20).phi);
}

}  // namespace
}  // namespace affpcl
