// Generated Markov reward processes against the equations of sec:td, by mdp.h and by enumeration.
#include "affpcl/problem/td.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "affpcl/base/error.h"
#include "affpcl/problem/mdp.h"
#include "tests/algebra.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Vector phi(const Td& td, int o, int d) { return part(td.features(), at(o * d), at(d)); }

Vector truth(const Td& td, std::int64_t i, int d) {
  Vector x;
  for (int r = 0; r < d; ++r)
    x.push_back(td.truth()->x.block(i / kLanes)[{0, d}].row(r)[static_cast<int>(i % kLanes)]);
  return x;
}

TEST(Td, TruthIsTheProjectedFixedPoint) {
  for (const Td::Rewards rewards : {Td::Rewards::kLinear, Td::Rewards::kTable})
    for (const Td::Kernels kernels : {Td::Kernels::kAdditive, Td::Kernels::kRelative}) {
      const Td::Config config{
          .agents = 5, .delta_env = 0.7, .kernels = kernels, .rewards = rewards};
      const Td td(config, 3, 1);
      const int S = config.states, d = config.dim;
      const Basis basis{S, d, td.features()};
      for (std::int64_t i = 0; i < config.agents; ++i) {
        const Chain chain{S, td.kernel(i)};
        const std::vector<double> pi = stationary(chain);
        std::vector<double> r(at(S), 0.0);
        for (int o = 0; o < S; ++o)
          for (int next = 0; next < S; ++next)
            r[at(o)] += chain.P[at(o * S + next)] * td.reward(i, o, next);
        const std::vector<double> want = projected_fixed_point(basis, pi, chain, r, config.gamma);
        for (int k = 0; k < d; ++k) EXPECT_NEAR(truth(td, i, d)[at(k)], want[at(k)], 1e-11);
      }
    }
}

// The centre's own system is the mean of the agents'.
TEST(Td, CentralTruthSolvesTheMeanSystem) {
  const Td td({.agents = 4, .delta_env = 1, .delta_obj = 1}, 5, 0);
  const int d = 4, S = 10;
  Vector rest(d), objective = Vector(d);
  const Vector xc = td.truth()->xc, thetac = td.truth()->thetac;
  for (std::int64_t i = 0; i < 4; ++i)
    for (int o = 0; o < S; ++o)
      for (int next = 0; next < S; ++next) {
        const double p = td.stationary(i, o) * td.kernel(i)[at(o * S + next)] / 4;
        const Vector here = phi(td, o, d), there = phi(td, next, d), c = (here + 0.5 * there) / 1.5;
        const double r = td.reward(i, o, next);
        rest += p * (dot(here - 0.5 * there, xc) - r) * here;
        objective += p * (dot(c, thetac) - r) * c;
      }
  EXPECT_LT(norm(rest), 1e-13);
  EXPECT_LT(norm(objective), 1e-13);
}

TEST(Td, RewardsAreLinearInTheTransitionsFeatures) {
  const Td td({.agents = 3, .delta_obj = 0.4}, 6, 0);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Vector t = td.theta(i);
    EXPECT_NEAR(td.reward(i, 2, 7), dot(t, phi(td, 2, 4) + 0.5 * phi(td, 7, 4)) / 1.5, 1e-15);
    // The first agent is the base.
    EXPECT_NEAR(norm(t - td.theta(0)), i == 0 ? 0 : 0.4, 1e-14);
  }
}

TEST(Td, LevelsMixTheSameKernels) {
  const Td none({.agents = 3, .delta_env = 0}, 8, 2), some({.agents = 3, .delta_env = 0.3}, 8, 2),
      all({.agents = 3, .delta_env = 1}, 8, 2);
  EXPECT_EQ(none.kernel(1), none.kernel(2));
  EXPECT_EQ(all.kernel(0), none.kernel(1));  // the first agent stays the base
  for (std::size_t e = 0; e < 100; ++e)
    EXPECT_NEAR(some.kernel(2)[e], 0.7 * none.kernel(2)[e] + 0.3 * all.kernel(2)[e], 1e-15);
}

// Bhandari et al. 2018, lemma 3 (sec:td): lambda^i >= (1 - gamma) lambda_min(E phi phi'). A
// theorem, so asserted. ex:td's bound on nu, (1 + gamma)/(1 - gamma), is none. How many of 1,000
// chains are beyond it depends on how many features there are for the states: none with 4 for 10,
// several in a hundred with 4 for 5.
int chains_beyond_the_bound_on_nu(int S, int d) {
  int beyond = 0;
  for (std::uint32_t replicate = 0; replicate < 100; ++replicate) {
    const Td::Config config{
        .agents = 10, .states = S, .dim = d, .gamma = 0.5, .delta_env = 1, .first_central = false};
    const Td td(config, 11, replicate);
    const std::vector<double> lambda = monotonicity(td).agents;
    for (std::int64_t i = 0; i < config.agents; ++i) {
      Matrix covariance(at(d), at(d)), Abar = covariance, Dbar = covariance;
      for (int o = 0; o < S; ++o) {
        covariance += td.stationary(i, o) * outer(phi(td, o, d), phi(td, o, d));
        for (int next = 0; next < S; ++next) {
          const double p = td.probability(i, o * S + next);
          const Vector v = phi(td, o, d) - config.gamma * phi(td, next, d);
          Abar += p * outer(phi(td, o, d), v);
          Dbar += p * norm(phi(td, o, d)) / norm(v) * outer(v, v);  // sqrt(A'A)
        }
      }
      const double least = symmetric_eigenvalues(covariance)[0];
      EXPECT_GE(lambda[at(i)], (1 - config.gamma) * least - 1e-14);
      const double nu = operator_norm(Dbar * inverse(Abar));
      beyond += nu > (1 + config.gamma) / (1 - config.gamma);
    }
  }
  return beyond;
}
TEST(Td, MonotonicityAndTheStochasticConditionNumber) {
  EXPECT_EQ(chains_beyond_the_bound_on_nu(10, 4), 0);
  const int beyond = chains_beyond_the_bound_on_nu(5, 4);
  EXPECT_GT(beyond, 65);
  EXPECT_LT(beyond, 167);
}

// A trajectory starts from the stationary law and moves by the kernel: over 400 x 64 agents' fifth
// transitions the law of pairs is that of independent sampling. Pearson's X^2 over its degrees of
// freedom; the limit is 5 standard deviations above 1, a false alarm in 1e-6 of seeds.
TEST(Td, TrajectoriesHaveTheLawOfPairs) {
  const std::int64_t n = 64;
  const int S = 4, repeats = 400;
  const Td td({.agents = n,
               .states = S,
               .dim = 2,
               .delta_env = 0,
               .concentration = 1,
               .sampling = Td::Sampling::kMarkov},
              3, 0);
  Layout world, sample;
  td.declare(world, sample);
  ASSERT_EQ(world.rows(), 1);
  std::vector<double> first(at(S * S)), fifth(at(S * S));
  for (std::uint32_t replicate = 0; replicate < repeats; ++replicate) {
    const Buffer memory(static_cast<std::size_t>(world.rows()) * kLanes),
        space(static_cast<std::size_t>(sample.rows()) * kLanes);
    const Out s{space.data(), sample.rows()};
    std::vector<int> before(at(n));
    for (std::uint32_t step = 0; step < 5; ++step) {
      td.draw({{1, replicate, step}, {}}, {{0, static_cast<int>(n)}, memory.data()}, s);
      for (int l = 0; l < n; ++l) {
        const int pair = static_cast<int>(s.row(sample.rows() - 1)[l]);
        EXPECT_TRUE(step == 0 || pair / S == before[at(l)]);  // it starts where it was led
        before[at(l)] = pair % S;
        if (step == 0) ++first[at(pair)];
        if (step == 4) ++fifth[at(pair)];
      }
    }
  }
  for (const std::vector<double>& seen : {first, fifth}) {
    double X2 = 0;
    for (int pair = 0; pair < S * S; ++pair) {
      const double want = td.probability(0, pair) * static_cast<double>(n) * repeats;
      X2 += (seen[at(pair)] - want) * (seen[at(pair)] - want) / want;
    }
    const double freedom = S * S - 1;
    EXPECT_LT(X2, freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST(Td, RefusesWhatHasNoValue) {
  const ProblemKind kind = Td::kind();
  const auto said = [&](const std::map<std::string, Value>& given) -> std::string {
    try {
      kind.make(Values(kind.params, given, "problem"), 1, 0);
    } catch (const BadInput& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(said({}), "accepted");
  EXPECT_EQ(said({{"gamma", 1.0}}), "gamma = 1 is not allowed: it must be from 0 to below 1");
  EXPECT_EQ(said({{"features", "a,b"}}),
            "problem.features = \"a,b\" means nothing without problem.file");
  EXPECT_EQ(said({{"file", "log.csv"}, {"states", std::int64_t{3}}}),
            "problem.states = 3 means nothing with problem.file");
  // More features than states: the mean matrix is singular.
  EXPECT_NE(said({{"states", std::int64_t{3}}}).find("no unique solution"), std::string::npos);
}

}  // namespace
}  // namespace affpcl
