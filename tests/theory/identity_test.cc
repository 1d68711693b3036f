// What AffPCL must be equal to: learning alone, federated averaging, itself in other words.
#include <gtest/gtest.h>

#include <bit>

#include "affpcl/base/error.h"
#include "affpcl/problem/gaussian.h"
#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

constexpr double kExact = 1e-12;

// A problem with starts of one's own. It has no truth: nothing is scored.
class Started final : public Problem {
 public:
  Started(const Problem& of, Vector x, Vector xc, Vector thetac)
      : of_(of), x_(std::move(x)), xc_(std::move(xc)), thetac_(std::move(thetac)) {}
  Shape shape() const override { return of_.shape(); }
  void declare(Layout& world, Layout& sample) const override { of_.declare(world, sample); }
  void draw(const Draw& draw, Agents world, Out s) const override { of_.draw(draw, world, s); }
  void objective(Lanes lanes, In s, Out b) const override { of_.objective(lanes, s, b); }
  void direction(Lanes lanes, In s, In b, In x, Scratch& scratch, Out g) const override {
    of_.direction(lanes, s, b, x, scratch, g);
  }
  void start(Lanes, Out x) const override { copy({x_.data(), x.rows, 1}, x); }
  CentralStart central_start() const override { return {xc_, thetac_}; }
  Facets facets() const override { return of_.facets(); }

 private:
  const Problem& of_;
  Vector x_, xc_, thetac_;
};

// Several methods side by side on the same samples; differences after every round.
class Pair {
 public:
  Pair(const Problem& problem, RunMethod one, RunMethod other, std::int64_t steps)
      : agents_(problem.shape().agents), team_(serial_team()) {
    RunOptions options;
    options.steps = steps;
    options.diverged_above = 1e300;
    std::vector<RunMethod> methods;
    methods.push_back(std::move(one));
    methods.push_back(std::move(other));
    run_ = std::make_unique<Run>(problem, std::move(methods), options, *team_);
  }
  double difference() {
    double most = 0;
    each_round([&](const Iterates& a, const Iterates& b) {
      most = std::max(most, distance(a.x, b.x));
      moved_ = std::max(moved_, norm(a.x[0]));
    });
    return most;
  }
  bool same_bits() {
    bool same = true;
    each_round([&](const Iterates& a, const Iterates& b) {
      moved_ = std::max(moved_, norm(a.x[0]));
      for (std::size_t i = 0; i < a.x.size(); ++i)
        for (std::size_t r = 0; r < a.x[i].size(); ++r)
          same = same &&
                 std::bit_cast<std::uint64_t>(a.x[i][r]) == std::bit_cast<std::uint64_t>(b.x[i][r]);
    });
    return same;
  }
  double moved() const { return moved_; }  // how far from 0 the first agent ever was

 private:
  template <class F>
  void each_round(F f) {
    while (!run_->done()) {
      run_->advance(run_->step() + 1);
      f(iterates(*run_, 0, agents_), iterates(*run_, 1, agents_));
    }
  }
  std::int64_t agents_;
  std::unique_ptr<Team> team_;
  std::unique_ptr<Run> run_;
  double moved_ = 0;
};

// Steps that suit the gaussian system; all the same where FedAvg is to be met.
Plan small_steps(Plan plan) {
  plan.agent = 0.01, plan.central = 0.01, plan.objective = 0.005;
  return plan;
}
Gaussian gaussian(std::int64_t agents, double delta, int dim = 5) {
  Gaussian::Config config;
  config.agents = agents, config.dim = dim;
  config.delta_env = config.delta_obj = delta;
  return {config, 3, 1};
}

// --- learning alone ----------------------------------------------------------------------------

TEST(IdentityIndependent, OneAgentToTheBit) {
  Dice dice(30);
  const Gaussian normal = gaussian(1, 0.3);
  FiniteSystem sys = wild_system(dice, {.agents = 1, .states = 5, .d = 3, .k = 3});
  const Tabular finite(sys, Tabular::Coe::kAuto);
  for (const Plan& plan : plans()) {
    SCOPED_TRACE(name_of(plan));
    if (plan.config.objective != AffPcl::Objective::kTabular) {
      const Plan p = small_steps(plan);
      Pair pair(normal, p.affpcl(), p.independent(), 200);
      EXPECT_TRUE(pair.same_bits());
      EXPECT_GT(pair.moved(), 0.01);
    }
    Pair pair(finite, plan.affpcl(), plan.independent(), 200);
    EXPECT_TRUE(pair.same_bits());
    EXPECT_GT(pair.moved(), 0.01);
  }
}

TEST(IdentityIndependent, OneAgentInBatches) {
  Dice dice(31);
  const Tabular finite(wild_system(dice, {.agents = 1, .states = 5, .d = 3, .k = 3}),
                       Tabular::Coe::kAuto);
  const Gaussian normal = gaussian(1, 0.3);
  const Plan plan{.batch = 4}, small = small_steps(plan);
  EXPECT_TRUE(Pair(normal, small.affpcl(), small.independent(), 100).same_bits());
  // Here the sum goes state by state, so the last bit may differ.
  EXPECT_LT(Pair(finite, plan.affpcl(), plan.independent(), 100).difference(), kExact);
}

TEST(IdentityIndependent, CentreHeldAtZero) {
  Dice dice(32);
  FiniteSystem sys = wild_system(dice, {.agents = 6, .states = 4, .d = 3, .k = 3});
  sys.xc0.clear(), sys.thetac0.clear();
  const Tabular finite(sys, Tabular::Coe::kAuto);
  const Gaussian normal = gaussian(70, 0.3);
  for (const auto correction : {AffPcl::Correction::kServer, AffPcl::Correction::kClient})
    for (int period : {1, 3}) {
      Plan plan{.config = {.correction = correction}, .period = period};
      plan.central = plan.objective = 0;
      EXPECT_TRUE(Pair(finite, plan.affpcl(), plan.independent(), 60).same_bits());
      plan.agent = 0.01;
      EXPECT_TRUE(Pair(normal, plan.affpcl(), plan.independent(), 60).same_bits());
    }
}

// --- federated averaging -----------------------------------------------------------------------

TEST(IdentityFedAvg, HomogeneousGaussianAgents) {
  for (std::int64_t agents : {2, 20, 70}) {
    const Gaussian problem = gaussian(agents, 0);
    const Vector theta = problem.theta(0), x(5, 0.2);
    const Started started(problem, x, x, theta);
    for (const auto central :
         {AffPcl::Central::kOwn, AffPcl::Central::kEstimated, AffPcl::Central::kAverage}) {
      const Plan plan = small_steps({.config = {.central = central}});
      Pair pair(started, plan.affpcl(), plan.fedavg(), 50);
      EXPECT_LT(pair.difference(), kExact);
    }
    // Told the objective, agents need not start at theta*.
    const Plan plan = small_steps({.config = {.objective = AffPcl::Objective::kKnown}});
    Pair pair(problem, plan.affpcl(), plan.fedavg(), 50);
    EXPECT_LT(pair.difference(), kExact);
    EXPECT_GT(pair.moved(), 0.1);
  }
}

TEST(IdentityFedAvg, HomogeneousFiniteAgents) {
  Dice dice(33);
  for (int agents : {2, 7, 300}) {
    FiniteSystem sys = wild_system(dice, {.agents = agents, .states = 4, .d = 2, .k = 2});
    for (int i = 1; i < agents; ++i) {
      std::copy_n(sys.mu.begin(), 4, sys.mu.begin() + i * 4);
      std::copy_n(sys.theta.begin(), 2, sys.theta.begin() + i * 2);
    }
    for (int i = 0; i < agents; ++i) std::copy_n(sys.xc0.begin(), 2, sys.x0.begin() + i * 2);
    sys.thetac0 = {sys.theta[0], sys.theta[1]};
    const Tabular problem(sys, Tabular::Coe::kAuto);
    for (const char* ratio : {"exact", "none"}) {
      const Plan plan{.ratio = ratio, .agent = 0.25};
      EXPECT_LT(Pair(problem, plan.affpcl(), plan.fedavg(), 50).difference(), kExact);
      const Plan batches{.ratio = ratio, .batch = 3, .agent = 0.25};
      EXPECT_LT(Pair(problem, batches.affpcl(), batches.fedavg(), 50).difference(), kExact);
    }
  }
}

// The centre of CDL-1 is FedAvg itself, however different the agents.
TEST(IdentityFedAvg, TheCentreIsFedAvg) {
  Dice dice(34);
  const FiniteSystem sys = wild_system(dice, {.agents = 5, .states = 4, .d = 2, .k = 2});
  const std::vector<int> states = random_states(dice, sys, 24);
  for (int period : {1, 4}) {
    const Plan plan{.period = period};
    Game affpcl(sys, states, plan.affpcl()), fedavg(sys, states, plan.fedavg());
    EXPECT_LT(distance(affpcl.end().xc, fedavg.end().xc), kExact);
  }
}

// --- itself, in other words --------------------------------------------------------------------

TEST(IdentityPeriod, OneStepIsThePlainMethod) {
  Dice dice(35);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 4});
  const std::vector<int> states = random_states(dice, sys, 1);
  for (const Plan& plan : plans()) {  // a round of one step, whatever the period is
    Plan longer = plan;
    longer.period = plan.config.central == AffPcl::Central::kAverage ? 1 : 5;
    const Iterates a = Game(sys, states, plan.affpcl()).end(),
                   b = Game(sys, states, longer.affpcl()).end();
    EXPECT_LT(distance(a.x, b.x), kExact);
    EXPECT_LT(distance(a.xc, b.xc), kExact);
    EXPECT_LT(distance(a.thetac, b.thetac), kExact);
  }
}

// One round on a batch moves by the mean of the rounds on its samples, one at a time.
TEST(IdentityBatch, MeanOfItsSamples) {
  Dice dice(36);
  const int n = 4, m = 3;
  const FiniteSystem sys = wild_system(dice, {.agents = n, .states = 4});
  const std::vector<int> states = random_states(dice, sys, m);
  for (const Plan& plan : plans()) {
    SCOPED_TRACE(name_of(plan));
    Plan batches = plan;
    batches.batch = m;
    const Iterates whole = Game(sys, states, batches.affpcl()).end();
    Iterates mean;
    for (int q = 0; q < m; ++q) {
      std::vector<int> one;
      for (int i = 0; i < n; ++i) one.push_back(states[at(i * m + q)]);
      const Iterates end = Game(sys, one, plan.affpcl()).end();
      if (q == 0) {
        mean = end;
        for (Vector& x : mean.x) x /= m;
        mean.xc /= m, mean.thetac /= m;
        continue;
      }
      for (std::size_t i = 0; i < mean.x.size(); ++i) mean.x[i] += end.x[i] / m;
      mean.xc += end.xc / m, mean.thetac += end.thetac / m;
    }
    EXPECT_LT(distance(whole.x, mean.x), kExact);
    EXPECT_LT(distance(whole.xc, mean.xc), kExact);
    if (plan.config.objective != AffPcl::Objective::kMoments) {  // solved, so not a mean of steps
      EXPECT_LT(distance(whole.thetac, mean.thetac), kExact);
    }
  }
}

TEST(IdentityBatch, EqualSamplesAreOneSample) {
  Dice dice(37);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 4});
  const std::vector<int> states = random_states(dice, sys, 20);
  std::vector<int> threefold;
  for (int s : states) threefold.insert(threefold.end(), 3, s);
  for (const Plan& plan : plans()) {
    Plan batches = plan;
    batches.batch = 3;
    const Iterates a = Game(sys, states, plan.affpcl()).end(),
                   b = Game(sys, threefold, batches.affpcl()).end();
    EXPECT_LT(distance(a.x, b.x), kExact);
    EXPECT_LT(distance(a.xc, b.xc), kExact);
  }
}

// Agents have no rank: renumbered, they end where they would have ended.
TEST(IdentityPermutation, AgentsRenumbered) {
  Dice dice(38);
  const int steps = 15;
  for (int n : {3, 70}) {
    const FiniteSystem sys = wild_system(dice, {.agents = n, .states = 4});
    const std::vector<int> states = random_states(dice, sys, steps);
    std::vector<int> to(at(n));  // agent i becomes to[i]
    for (int i = 0; i < n; ++i) to[at(i)] = (i * 11 + 1) % n;
    FiniteSystem other = sys;
    std::vector<int> reordered(states.size());
    for (int i = 0; i < n; ++i) {
      const auto j = static_cast<std::ptrdiff_t>(to[at(i)]);
      std::copy_n(sys.mu.begin() + i * 4, 4, other.mu.begin() + j * 4);
      std::copy_n(sys.theta.begin() + i * 2, 2, other.theta.begin() + j * 2);
      std::copy_n(sys.x0.begin() + i * 2, 2, other.x0.begin() + j * 2);
      std::copy_n(states.begin() + i * steps, steps, reordered.begin() + j * steps);
    }
    for (const Plan& plan : plans()) {
      SCOPED_TRACE(name_of(plan));
      const Iterates a = Game(sys, states, plan.affpcl()).end(),
                     b = Game(other, reordered, plan.affpcl()).end();
      const double scale = std::max(1.0, norm(a.xc));
      for (int i = 0; i < n; ++i)
        EXPECT_LT(distance(a.x[at(i)], b.x[at(to[at(i)])]),
                  kExact * std::max(scale, norm(a.x[at(i)])));
      EXPECT_LT(distance(a.xc, b.xc), kExact * scale);
    }
  }
}

// If all agents want the same, being told is the same as having learnt it, and so are CDL-1 and
// CDL-2.
TEST(IdentityKnownObjective, EqualAgents) {
  Dice dice(39);
  FiniteSystem sys = wild_system(dice, {.agents = 5, .states = 4});
  for (int i = 1; i < 5; ++i) std::copy_n(sys.theta.begin(), 2, sys.theta.begin() + i * 2);
  sys.thetac0 = {sys.theta[0], sys.theta[1]};
  const std::vector<int> states = random_states(dice, sys, 40);
  const auto play = [&](AffPcl::Objective objective, AffPcl::Central central) {
    return Game(sys, states, Plan{.config = {.objective = objective, .central = central}}.affpcl())
        .end();
  };
  const Iterates learnt = play(AffPcl::Objective::kLearnt, AffPcl::Central::kOwn);
  for (const auto objective : {AffPcl::Objective::kLearnt, AffPcl::Objective::kKnown})
    for (const auto central : {AffPcl::Central::kOwn, AffPcl::Central::kEstimated}) {
      const Iterates other = play(objective, central);
      EXPECT_LT(distance(learnt.x, other.x), kExact);
      EXPECT_LT(distance(learnt.xc, other.xc), kExact);
    }
}

TEST(IdentitySteps, AgentSpecific) {
  Dice dice(40);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 4});
  const std::vector<int> states = random_states(dice, sys, 30);
  const auto play = [&](std::vector<double> factors) {
    return Game(sys, states, Plan{.agent_factors = std::move(factors)}.affpcl()).end();
  };
  const Iterates common = play({}), ones = play({1, 1, 1, 1}), mixed = play({1, 0.5, 0, 1});
  EXPECT_EQ(distance(common.x, ones.x), 0);
  // An agent's step is its own affair: nobody else, and not the centre, notices.
  EXPECT_EQ(distance(common.x[0], mixed.x[0]), 0);
  EXPECT_EQ(distance(common.x[3], mixed.x[3]), 0);
  EXPECT_EQ(distance(common.xc, mixed.xc), 0);
  EXPECT_EQ(distance(common.thetac, mixed.thetac), 0);
  EXPECT_EQ(distance(mixed.x[2], part(sys.x0, 4, 2)), 0);
  EXPECT_GT(distance(common.x[1], mixed.x[1]), 1e-3);
  const Plan half{.agent = 0.25};
  EXPECT_EQ(distance(mixed.x[1], Game(sys, states, half.affpcl()).end().x[1]), 0);
}

// central = "average" says that x^c is the mean of the x^i. It is kept up by a sum of its own, so
// it must be that after every round. Server-side corrections cancel in the mean, for mean_i rho^i =
// 1; client-side ones do not, and the method refuses.
void expect_mean(const Plan& plan) {
  SCOPED_TRACE(name_of(plan));
  Dice dice(41);
  const FiniteSystem sys = wild_system(dice, {.agents = 5, .states = 4});
  Game game(sys, random_states(dice, sys, 30), plan.affpcl());
  for (int t = 0; t <= 30 / plan.batch; t += 3) {
    const Iterates now = game.after(t);
    Vector mean(at(sys.d));
    for (const Vector& x : now.x) mean += x / 5;
    ASSERT_LT(distance(now.xc, mean), kExact);
  }
}

TEST(IdentityAverage, IsTheMeanOfTheAgents) {
  for (const auto objective : {AffPcl::Objective::kLearnt, AffPcl::Objective::kMoments,
                               AffPcl::Objective::kKnown, AffPcl::Objective::kTabular})
    for (const char* ratio : {"exact", "none"})
      expect_mean({.config = {.objective = objective, .central = AffPcl::Central::kAverage},
                   .ratio = ratio});
}

TEST(IdentityAverage, IsTheMeanWithOwnObjectivesInTheAggregate) {
  for (const auto objective : {AffPcl::Objective::kLearnt, AffPcl::Objective::kKnown})
    for (const int batch : {1, 2})
      expect_mean({.config = {.objective = objective,
                              .central = AffPcl::Central::kAverage,
                              .aggregate = AffPcl::Aggregate::kOwn},
                   .ratio = "none",
                   .batch = batch});
}

TEST(IdentityAverage, RefusesClientSideCorrection) {
  EXPECT_THROW(expect_mean({.config = {.central = AffPcl::Central::kAverage,
                                       .correction = AffPcl::Correction::kClient}}),
               BadInput);
}

// The solutions that runs are scored against, from the definitions.
TEST(IdentityTruth, FiniteSystem) {
  Dice dice(42);
  for (int agents : {3, 70}) {
    const FiniteSystem sys = wild_system(dice, {.agents = agents, .states = 5, .d = 3, .k = 3});
    const Exact e(sys);
    const Tabular problem(sys, Tabular::Coe::kAuto);
    const Truth& truth = *problem.truth();
    for (int i = 0; i < agents; ++i) {
      const Out x = truth.x.block(i / kLanes)[{0, 3}];
      for (int r = 0; r < 3; ++r) EXPECT_NEAR(x.row(r)[i % kLanes], e.x[at(i)][at(r)], 1e-11);
    }
    for (int r = 0; r < 3; ++r) {
      EXPECT_NEAR(truth.xc[at(r)], e.xc[at(r)], 1e-11);
      EXPECT_NEAR(truth.thetac[at(r)], e.thetac[at(r)], 1e-11);
    }
    const Monotonicity m = monotonicity(problem);
    for (int i = 0; i < agents; ++i)
      EXPECT_NEAR(m.agents[at(i)], smallest_symmetric(e.Abar[at(i)]), kExact);
    EXPECT_NEAR(m.central, smallest_symmetric(e.A0), kExact);
    EXPECT_NEAR(m.objective, smallest_symmetric(e.Phi0), kExact);
  }
}

}  // namespace
}  // namespace affpcl::testing
