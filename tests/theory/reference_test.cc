// The engine against Algorithm 1 written with plain loops (oracle.h): every variant, periods and
// batches, one agent to several leaves of agents, both problems.
#include <gtest/gtest.h>

#include "affpcl/problem/gaussian.h"

#include "affpcl/problem/apply_test.h"
#include "tests/theory/oracle.h"

namespace affpcl::testing {
namespace {

constexpr double kExact = 1e-12;

double difference(FiniteSystem sys, Plan plan, Dice& dice, int steps) {
  sys.order = random_states(dice, sys, steps * plan.batch);
  sys.steps = steps * plan.batch;
  const World world = finite_world(sys, sys.order);
  return difference(Tabular(sys, Tabular::Coe::kAuto), plan, world, steps);
}

TEST(TheoryReference, EveryVariant) {
  Dice dice(20);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  for (Plan plan : plans())
    for (const char* ratio : {"exact", "none"}) {
      plan.ratio = ratio;
      SCOPED_TRACE(name_of(plan));
      EXPECT_LT(difference(sys, plan, dice, 12), kExact);
    }
}

TEST(TheoryReference, PeriodsAndBatches) {
  Dice dice(21);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  for (Plan plan : plans())
    for (const auto& [period, batch] : {std::pair(1, 3), {3, 1}, {4, 2}}) {
      if (plan.config.central == AffPcl::Central::kAverage) continue;  // needs period 1
      plan.period = period, plan.batch = batch;
      plan.agent = 0.2, plan.central = 0.1, plan.objective = 0.3;
      SCOPED_TRACE(name_of(plan));
      EXPECT_LT(difference(sys, plan, dice, 11), kExact);  // the last round is short
    }
}

TEST(TheoryReference, AverageInBatches) {
  Dice dice(22);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  Plan plan{.config = {.central = AffPcl::Central::kAverage}, .batch = 2};
  EXPECT_LT(difference(sys, plan, dice, 10), kExact);
}

TEST(TheoryReference, AgentSpecificSteps) {
  Dice dice(23);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  Plan plan{.agent_factors = {0.5, 1, 1.5}};
  EXPECT_LT(difference(sys, plan, dice, 10), kExact);
  plan.period = 3;
  EXPECT_LT(difference(sys, plan, dice, 10), kExact);
}

TEST(TheoryReference, ShrinkingSteps) {  // step k of a round that starts at t takes alpha_{t + k}
  Dice dice(26);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  for (int period : {1, 4}) {
    Plan plan{.period = period, .t0 = 3};
    EXPECT_LT(difference(sys, plan, dice, 10), kExact);
    plan.agent_factors = {0.3, 0.5, 0.4};
    EXPECT_LT(difference(sys, plan, dice, 10), kExact);
  }
}

TEST(TheoryReference, PhiOfAnyShape) {
  Dice dice(24);
  for (int k : {1, 2, 3, 5})
    for (int period : {1, 3}) {
      const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3, .d = 3, .k = k});
      EXPECT_LT(difference(sys, {.period = period}, dice, 9), kExact);
    }
}

// One lane, a full block, a block and a lane, full leaves (256), and three leaves, the last ragged.
TEST(TheoryReference, AnyNumberOfAgents) {
  Dice dice(25);
  for (int agents : {1, 2, 63, 64, 65, 256, 257, 600}) {
    SCOPED_TRACE(agents);
    const FiniteSystem sys = wild_system(dice, {.agents = agents, .states = 3});
    EXPECT_LT(difference(sys, {}, dice, 2), kExact);
  }
  const FiniteSystem sys = wild_system(dice, {.agents = 600, .states = 3});
  EXPECT_LT(difference(sys, {.config = {.objective = AffPcl::Objective::kTabular}}, dice, 2),
            kExact);
  EXPECT_LT(difference(sys, {.config = {.correction = AffPcl::Correction::kClient}}, dice, 1),
            kExact);
}

// --- gaussian: densities are written out here --------------------------------------------------

World gaussian_world(const Gaussian& problem, const Key& key) {
  const int d = problem.config().dim;
  const auto n = static_cast<int>(problem.config().agents);
  return [&problem, key, d, n](int agent, int index) {
    const std::int64_t block = agent / kLanes;
    const int lane = agent % kLanes;
    const Lanes lanes = lanes_of(block, n);
    Buffer memory(at(3 * d) * kLanes);
    const Out s{memory.data(), d}, zero{memory.data() + d * kLanes, d},
        y{memory.data() + 2 * d * kLanes, d};
    Key k = key;
    k.step = static_cast<std::uint32_t>(index);
    problem.draw({k, {}}, {lanes, nullptr}, s);
    Vector state;
    for (int r = 0; r < d; ++r) state.push_back(s.row(r)[lane]);
    // At s = 0 the matrices are A_base and Phi_base.
    Matrix A(at(d), at(d)), Phi = A;
    for (std::size_t c = 0; c < at(d); ++c) {
      const Vector e = unit(at(d), c);
      apply(problem, lanes, zero, {e.data(), d, 1}, y);
      for (int r = 0; r < d; ++r) A(at(r), c) = y.row(r)[0];
      apply_Phi(problem, lanes, zero, {e.data(), d, 1}, y);
      for (int r = 0; r < d; ++r) Phi(at(r), c) = y.row(r)[0];
    }
    const Matrix I = Matrix::identity(at(d)), ss = outer(state, state);
    Sample sample;
    sample.A = (I + problem.config().eps_A * ss) * A;
    sample.Phi = (I + problem.config().eps_b * ss) * Phi;
    sample.b = sample.Phi * problem.theta(agent);
    sample.b0 = Vector(at(d));  // and first the densities, then their ratio to the mixture
    for (int i = 0; i < n; ++i) {
      sample.b0 += sample.Phi * problem.theta(i) / n;
      double square = 0;
      for (int r = 0; r < d; ++r)
        square +=
            std::pow(state[at(r)] - problem.mean(lanes_of(i / kLanes, n)).at(r, i % kLanes), 2);
      sample.rho.push_back(std::exp(-0.5 * square));
    }
    sample.rho /= sum(sample.rho) / n;
    return sample;
  };
}

TEST(TheoryReference, Gaussian) {
  for (std::int64_t agents : {1, 5, 70})
    for (std::int64_t environments : {0, 3})
      for (double delta : {0.0, 0.3}) {
        SCOPED_TRACE(::testing::Message() << agents << " agents, delta " << delta);
        Gaussian::Config config;
        config.agents = agents, config.dim = 3, config.environments = environments;
        config.delta_env = config.delta_obj = delta;
        const Gaussian problem(config, 7, 2);
        const World world = gaussian_world(problem, {1, 0, 0});  // RunOptions' seed and replicate
        for (Plan plan : plans()) {
          plan.agent = 0.002, plan.central = 0.003, plan.objective = 0.001;
          plan.batch = agents == 5 ? 2 : 1;
          if (plan.config.objective == AffPcl::Objective::kTabular) continue;
          SCOPED_TRACE(name_of(plan));
          EXPECT_LT(difference(problem, plan, world, agents == 70 ? 2 : 5), kExact);
        }
      }
}

}  // namespace
}  // namespace affpcl::testing
