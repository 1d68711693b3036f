// lem:correction by enumeration: the expected direction of an agent is that of its own system,
// whatever the centre is. All sums over all joint states, through the real Run.
#include <gtest/gtest.h>

#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

constexpr double kExact = 1e-12;

// First two moments of one round's directions (step / step size), after `prefix` has been played.
struct Moments {
  Iterates before;
  std::vector<Vector> mean;    // E gtilde^i
  std::vector<double> square;  // E|gtilde^i|^2
  Vector central, objective;   // of x^c and theta^c
  double variance(int i) const { return square[at(i)] - squared_norm(mean[at(i)]); }
};
Moments moments(const FiniteSystem& sys, const Plan& plan, const std::vector<int>& prefix = {}) {
  const Exact e(sys);
  const auto rounds = static_cast<std::int64_t>(prefix.size()) / e.n / plan.batch;
  Moments m;
  m.mean.assign(at(e.n), Vector(at(e.d)));
  m.square.assign(at(e.n), 0);
  m.central = Vector(at(e.d));
  double total = 0;
  each_joint_state(e, plan.batch, [&](const std::vector<int>& states, double p) {
    Game game(sys, joined(prefix, states, e.n), plan.affpcl());
    m.before = game.after(rounds);
    const Iterates after = game.end();
    for (int i = 0; i < e.n; ++i) {
      const Vector g = (m.before.x[at(i)] - after.x[at(i)]) / plan.agent;
      m.mean[at(i)] += p * g;
      m.square[at(i)] += p * squared_norm(g);
    }
    m.central += p * (m.before.xc - after.xc) / plan.central;
    if (m.objective.size() == 0) m.objective = Vector(after.thetac.size());
    if (after.thetac.size() > 0)
      m.objective += p * (m.before.thetac - after.thetac) / plan.objective;
    total += p;
  });
  EXPECT_NEAR(total, 1, kExact);
  return m;
}

Vector own_direction(const Exact& e, int i, const Vector& x) {
  return e.Abar[at(i)] * x - e.bbar[at(i)];
}

TEST(TheoryUnbiased, EveryVariantFollowsTheAgentsOwnSystem) {
  Dice dice(1);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3, .d = 2, .k = 2});
  const Exact e(sys);
  const std::vector<int> prefix = random_states(dice, sys, 3);  // so that tables hold something
  for (const Plan& plan : plans()) {
    SCOPED_TRACE(name_of(plan));
    const Moments m = moments(sys, plan, prefix);
    for (int i = 0; i < e.n; ++i)
      EXPECT_LT(distance(m.mean[at(i)], own_direction(e, i, m.before.x[at(i)])), kExact)
          << "agent " << i;
  }
}

TEST(TheoryUnbiased, ManySystems) {
  Dice dice(2);
  const Wild shapes[] = {{.agents = 2, .states = 4, .d = 1, .k = 1},
                         {.agents = 2, .states = 3, .d = 3, .k = 3},
                         {.agents = 4, .states = 2, .d = 2, .k = 2},
                         {.agents = 3, .states = 2, .d = 2, .k = 1},   // Phi not square:
                         {.agents = 2, .states = 3, .d = 2, .k = 4}};  // COE by the gradient
  for (const Wild& shape : shapes)
    for (int repeat = 0; repeat < 4; ++repeat) {
      const FiniteSystem sys = wild_system(dice, shape);
      const Exact e(sys);
      const Moments m = moments(sys, {});
      for (int i = 0; i < e.n; ++i)
        EXPECT_LT(distance(m.mean[at(i)], own_direction(e, i, m.before.x[at(i)])), kExact);
    }
}

TEST(TheoryUnbiased, StatesThatAnAgentNeverSees) {  // 0/0 = 0 in the ratio
  Dice dice(3);
  FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  sys.mu = {0.5, 0.5, 0.0, 0.0, 0.3, 0.7, 0.0, 1.0, 0.0};
  const Exact e(sys);
  const Moments m = moments(sys, {});
  for (int i = 0; i < e.n; ++i)
    EXPECT_LT(distance(m.mean[at(i)], own_direction(e, i, m.before.x[at(i)])), kExact);
}

TEST(TheoryUnbiased, ObjectivesGivenStateByState) {  // b^i(s) arbitrary, no Phi (apx:lfa)
  Dice dice(4);
  FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3});
  sys.k = 0;
  sys.Phi.clear(), sys.theta.clear(), sys.thetac0.clear();
  append(sys.b, dice.vector(2 * 3 * 2));
  const Exact e(sys);
  const std::vector<int> prefix = random_states(dice, sys, 2);
  for (const auto objective : {AffPcl::Objective::kTabular, AffPcl::Objective::kKnown}) {
    const Moments m = moments(sys, {.config = {.objective = objective}}, prefix);
    for (int i = 0; i < e.n; ++i)
      EXPECT_LT(distance(m.mean[at(i)], own_direction(e, i, m.before.x[at(i)])), kExact);
  }
}

// eq:het-pcl-alg: the agents' own b^j in the mean. Unbiased in one environment where b^0 is known;
// a learnt one is wrong by what theta^c has still to learn. In several environments the bias is
// that of the control variate, exactly.
TEST(TheoryUnbiased, OwnObjectivesInTheMean) {
  Dice dice(14);
  for (const bool common : {true, false}) {
    FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
    if (common)
      for (std::size_t r = 3; r < sys.mu.size(); ++r) sys.mu[r] = sys.mu[r - 3];
    const Exact e(sys);
    const std::vector<int> prefix = random_states(dice, sys, 1);
    for (const auto objective : {AffPcl::Objective::kKnown, AffPcl::Objective::kLearnt})
      for (const auto central : {AffPcl::Central::kOwn, AffPcl::Central::kAverage}) {
        const Plan plan{.config = {.objective = objective,
                                   .central = central,
                                   .aggregate = AffPcl::Aggregate::kOwn},
                        .ratio = "none"};
        const Moments m = moments(sys, plan, prefix);
        const bool known = objective == AffPcl::Objective::kKnown;
        for (int i = 0; i < e.n; ++i) {
          Vector bias = e.A0 * m.before.xc - e.b0;  // E g^0 - E g^{0->i}
          for (int s = 0; s < e.S; ++s) {
            Vector b0(at(e.d));
            for (int j = 0; j < e.n; ++j) b0 += e.b[at(j)][at(s)] / e.n;
            if (!known) b0 = e.Phi[at(s)] * m.before.thetac;
            bias += e.law(i, s) * (b0 - e.A[at(s)] * m.before.xc);
          }
          const Vector own = own_direction(e, i, m.before.x[at(i)]);
          EXPECT_LT(distance(m.mean[at(i)], own + bias), kExact);
          if (common && known) {
            EXPECT_LT(norm(bias), kExact);
          } else if (!common) {
            EXPECT_GT(norm(bias), 0.01);
          }
        }
      }
  }
}

TEST(TheoryUnbiased, BatchesOfTwo) {
  Dice dice(5);
  const FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3});
  const Exact e(sys);
  for (const auto correction : {AffPcl::Correction::kServer, AffPcl::Correction::kClient}) {
    const Plan plan{.config = {.correction = correction}, .batch = 2};
    const Moments m = moments(sys, plan);
    for (int i = 0; i < e.n; ++i)
      EXPECT_LT(distance(m.mean[at(i)], own_direction(e, i, m.before.x[at(i)])), kExact);
    EXPECT_LT(distance(m.central, e.A0 * m.before.xc - e.b0), kExact);
    EXPECT_LT(distance(m.objective, e.Phi0 * m.before.thetac - e.b0), kExact);
  }
}

// A batch of m halves the variance by m, exactly: E|gtilde - mean|^2 / m.
TEST(TheoryUnbiased, VarianceOfABatch) {
  Dice dice(6);
  const FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3});
  const Moments one = moments(sys, {}), two = moments(sys, {.batch = 2});
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(two.variance(i), one.variance(i) / 2, 1e-11);
}

// Without the correction the bias is eq:correction with rhohat = 1, to the last digit, and not
// small: about a quarter of the direction itself.
TEST(TheoryUnbiased, NoRatioIsBiasedByExactlyItsError) {
  Dice dice(7);
  double relative = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
    const Exact e(sys);
    for (const auto correction : {AffPcl::Correction::kServer, AffPcl::Correction::kClient}) {
      const Moments m = moments(sys, {.config = {.correction = correction}, .ratio = "none"});
      for (int i = 0; i < e.n; ++i) {
        const Vector own = own_direction(e, i, m.before.x[at(i)]);
        Vector bias(at(e.d));
        for (int s = 0; s < e.S; ++s)
          bias += e.mu0[at(s)] * (1 - e.rho(i, s)) *
                  (e.A[at(s)] * m.before.xc - e.Phi[at(s)] * m.before.thetac);
        EXPECT_LT(distance(m.mean[at(i)], own + bias), kExact);
        relative += norm(bias) / norm(own) / 30;
      }
    }
  }
  EXPECT_GT(relative, 0.1);
}

TEST(TheoryUnbiased, CentralDirections) {
  Dice dice(8);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
    const Exact e(sys);
    const std::vector<int> prefix = random_states(dice, sys, 1);
    for (const auto central :
         {AffPcl::Central::kOwn, AffPcl::Central::kEstimated, AffPcl::Central::kAverage}) {
      const Moments m = moments(sys, {.config = {.central = central}}, prefix);
      Vector expected(at(e.d));
      if (central == AffPcl::Central::kOwn) expected = e.A0 * m.before.xc - e.b0;  // CDL-1
      if (central == AffPcl::Central::kEstimated)                                  // CDL-2
        expected = e.A0 * m.before.xc - e.Phi0 * m.before.thetac;
      if (central == AffPcl::Central::kAverage)
        for (int i = 0; i < e.n; ++i)  // x^0 moves by the mean step, at the agents' own rate
          expected += own_direction(e, i, m.before.x[at(i)]) / e.n * 0.5 / 0.25;
      EXPECT_LT(distance(m.central, expected), kExact);
      EXPECT_LT(distance(m.objective, e.Phi0 * m.before.thetac - e.b0), kExact);  // COE
    }
  }
}

TEST(TheoryUnbiased, CentralObjectiveByGradient) {  // Phi not square: E_mu0 Phi'(Phi theta - b)
  Dice dice(9);
  const FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3, .d = 2, .k = 3});
  const Exact e(sys);
  const Moments m = moments(sys, {});
  Vector expected(at(e.k));
  for (int i = 0; i < e.n; ++i)
    for (int s = 0; s < e.S; ++s)
      expected += e.law(i, s) / e.n * transpose(e.Phi[at(s)]) *
                  (e.Phi[at(s)] * m.before.thetac - e.b[at(i)][at(s)]);
  EXPECT_LT(distance(m.objective, expected), kExact);
}

TEST(TheoryUnbiased, RatiosAverageToOne) {
  Dice dice(10);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const FiniteSystem sys = wild_system(dice, {.agents = 5, .states = 4});
    const Exact e(sys);
    const Tabular problem(sys, Tabular::Coe::kAuto);
    Scratch scratch;
    for (int i = 0; i < e.n; ++i) {
      double sum = 0, own = 0;
      for (int s = 0; s < e.S; ++s) {
        const Out state = scratch.rows(1), rho = scratch.rows(1);
        fill(state, s);
        problem.densities()->own({0, e.n}, state, scratch, rho);
        EXPECT_NEAR(problem.rho(i, s), e.rho(i, s), kExact);
        sum += problem.mu0(s) * problem.rho(i, s);
        own += e.mu0[at(s)] * rho.p[i];
        EXPECT_LE(problem.rho(i, s), e.n);
      }
      EXPECT_NEAR(sum, 1, kExact);
      EXPECT_NEAR(own, 1, kExact);
    }
  }
}

// An agent sees a state with probability eps; the others see it often. Client-side correction
// divides by rho^i ~ eps there: unbiased, but its variance grows as 1/eps. Server-side stays below
// the bound that rho <= n gives (lem:vd-fed's H_1).
TEST(TheoryUnbiased, ClientSideVarianceExplodesAndServerSideDoesNot) {
  Dice dice(11);
  FiniteSystem sys = wild_system(dice, {.agents = 2, .states = 3});
  const auto variance = [&](double eps, AffPcl::Correction correction) {
    sys.mu = {0.6 - eps, 0.4, eps, 0.3, 0.2, 0.5};
    const Moments m = moments(sys, {.config = {.correction = correction}});
    const Exact e(sys);
    EXPECT_LT(distance(m.mean[0], own_direction(e, 0, m.before.x[0])), 1e-9);
    return m.variance(0);
  };
  const double rare[] = {1e-2, 1e-3, 1e-4, 1e-5};
  std::vector<double> server, client;
  for (double eps : rare) {
    server.push_back(variance(eps, AffPcl::Correction::kServer));
    client.push_back(variance(eps, AffPcl::Correction::kClient));
  }
  for (std::size_t k = 1; k < server.size(); ++k) {
    EXPECT_NEAR(server[k] / server[0], 1, 0.2);
    EXPECT_NEAR(client[k] / client[k - 1], 10, 1);
  }
  EXPECT_GT(client.back(), 1e3 * server.back());

  // rho^i <= n gives |gtilde^i| <= |g^i| + (n + 1) max|g^{c->j}|, whatever eps is.
  const Exact e(sys);
  const Vector &xc = sys.xc0, &thetac = sys.thetac0, x = part(sys.x0, 0, 2);
  double gc = 0, g = 0;
  for (int s = 0; s < e.S; ++s) {
    gc = std::max(gc, norm(e.A[at(s)] * xc - e.Phi[at(s)] * thetac));
    g = std::max(g, norm(e.A[at(s)] * x - e.b[0][at(s)]));
  }
  for (double v : server) EXPECT_LT(v, std::pow(g + (e.n + 1) * gc, 2));
}

}  // namespace
}  // namespace affpcl::testing
