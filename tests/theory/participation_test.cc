// Absent agents by enumeration: what lem:correction says holds for those present, given the round's
// set where ratios are exact, and on average over uniform participation where they are ratios to
// the mixture of all. All sums over all joint states and all sets, through the real Run.
#include <gtest/gtest.h>

#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

constexpr double kExact = 1e-12;
using Set = std::vector<std::int64_t>;

std::vector<Set> sets(int n, int m) {
  std::vector<Set> all;
  for (unsigned bits = 0; bits < 1u << n; ++bits) {
    Set set;
    for (int i = 0; i < n; ++i)
      if ((bits >> i & 1) != 0) set.push_back(i);
    if (static_cast<int>(set.size()) == m) all.push_back(set);
  }
  return all;
}

bool contains(const Set& set, int i) { return std::find(set.begin(), set.end(), i) != set.end(); }

// What a learnt ratio becomes: exactly the ratio to the mixture of all agents.
class AgainstAll final : public Ratio {
 public:
  explicit AgainstAll(bool weighs) : weighs_(weighs) {}
  void declare(const Problem& problem, Layout&, Layout&, SumLayout& sum) override {
    M_ = sum.add_product("M", problem.densities()->p(), problem.shape().d);
  }
  void contribute(const Block& block, In s, In g, bool, Message message) const override {
    message.each(M_, [&](LaneSet which, double* M) {
      block.problem().densities()->accumulate_some(which, block.lanes(), s, g, false,
                                                   block.scratch(), M);
    });
  }
  void correct(const Block& block, Mean mean, Out rg) const override {
    block.problem().densities()->correct(block.lanes(), mean[M_], rg);
  }
  void own(const Block& block, In s, Out rho) const override {
    block.problem().densities()->own(block.lanes(), s, block.scratch(), rho);
  }
  bool against_all() const override { return weighs_; }

 private:
  bool weighs_;
  Product M_;
};

RunMethod against_all(const Plan& plan, bool weighs = true) {
  return {"affpcl", std::make_unique<AffPcl>(plan.config, std::make_unique<AgainstAll>(weighs)),
          plan.period, plan.batch, plan.steps()};
}

// Mean directions of one round (steps over step sizes), given the set.
struct Means {
  Iterates before;
  std::vector<Vector> x;
  Vector xc, thetac;
};
template <class Make>
Means means(const FiniteSystem& sys, const Plan& plan, const Set& set, Make make) {
  const Exact e(sys);
  Means m;
  m.x.assign(at(e.n), Vector(at(e.d)));
  m.xc = Vector(at(e.d));
  each_joint_state(e, plan.batch, [&](const std::vector<int>& states, double p) {
    Game game(sys, states, make(), {set});
    m.before = game.now();
    const Iterates after = game.end();
    for (int i = 0; i < e.n; ++i)
      m.x[at(i)] += p * (m.before.x[at(i)] - after.x[at(i)]) / plan.agent;
    m.xc += p * (m.before.xc - after.xc) / plan.central;
    if (m.thetac.size() == 0) m.thetac = Vector(after.thetac.size());
    if (after.thetac.size() > 0) m.thetac += p * (m.before.thetac - after.thetac) / plan.objective;
  });
  return m;
}

Vector own_direction(const Exact& e, int i, const Vector& x) {
  return e.Abar[at(i)] * x - e.bbar[at(i)];
}

TEST(TheoryParticipation, ExactRatiosAreUnbiasedGivenAnySet) {
  Dice dice(1);
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 3});
  const Exact e(sys);
  for (const Plan& plan : plans()) {
    if (plan.config.central == AffPcl::Central::kAverage) continue;  // refused
    SCOPED_TRACE(name_of(plan));
    for (int m = 1; m <= 3; ++m)
      for (const Set& set : sets(3, m)) {
        const Means mean = means(sys, plan, set, [&] { return plan.affpcl(); });
        for (int i = 0; i < e.n; ++i) {
          const Vector own = own_direction(e, i, mean.before.x[at(i)]);
          if (contains(set, i))
            EXPECT_LT(distance(mean.x[at(i)], own), kExact) << "agent " << i << " of " << m;
          else
            EXPECT_EQ(norm(mean.x[at(i)]), 0) << "agent " << i << " is absent";
        }
      }
  }
}

// Ratios to the mixture of all, averaged over the sets that agent i is in.
double bias(const FiniteSystem& sys, const Plan& plan, int m, bool weighs) {
  const Exact e(sys);
  std::vector<Vector> mean(at(e.n), Vector(at(e.d)));
  std::vector<int> times(at(e.n), 0);
  Iterates before;
  for (const Set& set : sets(e.n, m)) {
    const Means of_set = means(sys, plan, set, [&] { return against_all(plan, weighs); });
    before = of_set.before;
    for (const std::int64_t i : set) mean[at(i)] += of_set.x[at(i)], ++times[at(i)];
  }
  double most = 0;
  for (int i = 0; i < e.n; ++i) {
    const Vector own = own_direction(e, i, before.x[at(i)]);
    most = std::max(most, distance(mean[at(i)] / times[at(i)], own) / norm(own));
  }
  return most;
}

TEST(TheoryParticipation, RatiosToTheMixtureOfAllAreUnbiasedOverUniformParticipation) {
  Dice dice(2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 3});
    for (int m = 1; m <= 4; ++m) EXPECT_LT(bias(sys, {}, m, true), kExact) << m << " present";
  }
  const FiniteSystem sys = wild_system(dice, {.agents = 3, .states = 2});
  for (int m = 1; m <= 3; ++m)
    EXPECT_LT(bias(sys, {.batch = 2}, m, true), kExact) << m << " present, batches of 2";
}

// An agent's own sample is in the sum of every round that it takes part in: the plain mean of those
// present counts it n/m times too often.
TEST(TheoryParticipation, WithoutWeightsTheyAreBiased) {
  Dice dice(3);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 3});
  for (int m = 1; m < 4; ++m) EXPECT_GT(bias(sys, {}, m, false), 0.02) << m << " present";
  EXPECT_LT(bias(sys, {}, 4, false), kExact);
}

// A schedule that always brings the same agents together is no uniform participation.
TEST(TheoryParticipation, AFixedSetIsNotUniform) {
  Dice dice(4);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 3});
  const Exact e(sys);
  const Means m = means(sys, {}, {0, 1}, [&] { return against_all({}); });
  EXPECT_GT(distance(m.x[0], own_direction(e, 0, m.before.x[0])), 0.01);
}

TEST(TheoryParticipation, CentralStepsAreUnbiasedOverUniformParticipation) {
  Dice dice(5);
  const FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 3});
  const Exact e(sys);
  for (const auto central : {AffPcl::Central::kOwn, AffPcl::Central::kEstimated})
    for (int m = 1; m <= 4; ++m) {
      const Plan plan{.config = {.central = central}};
      const std::vector<Set> all = sets(4, m);
      Vector xc(at(e.d)), thetac(at(e.k));
      Iterates before;
      for (const Set& set : all) {
        const Means mean = means(sys, plan, set, [&] { return plan.affpcl(); });
        before = mean.before;
        xc += mean.xc / static_cast<double>(all.size());
        thetac += mean.thetac / static_cast<double>(all.size());
      }
      const Vector b0 = central == AffPcl::Central::kOwn ? e.b0 : e.Phi0 * before.thetac;
      EXPECT_LT(distance(xc, e.A0 * before.xc - b0), kExact);
      EXPECT_LT(distance(thetac, e.Phi0 * before.thetac - e.b0), kExact);
    }
}

// Learnt from the rounds that an agent takes part in, ratios become right: the error of AffPCL
// falls with the steps, as that of independent learning does. A ratio that stays wrong leaves a
// bias that does not fall.
TEST(TheoryParticipation, LearntRatiosBecomeRight) {
  Dice dice(6);
  FiniteSystem sys = wild_system(dice, {.agents = 4, .states = 3});
  const Tabular problem(sys, Tabular::Coe::kAuto);
  RunOptions options;
  options.steps = 20000;
  options.tail = 2000;
  options.participation = 0.5;
  const Plan right{.t0 = 20};
  for (const char* ratio : {"counts", "linear", "fixed-point"}) {
    Plan plan = right, wrong = right;
    plan.ratio = ratio, wrong.ratio = "none";
    RunMethod learnt = plan.affpcl(), none = wrong.affpcl();
    none.name = "none";
    learnt.step.ratio = learnt.step.agent;
    const std::vector<Record> r =
        records(problem, options, std::move(learnt), std::move(none), right.independent());
    EXPECT_LT(r[0].mse, 2 * r[2].mse) << ratio;
    EXPECT_GT(r[1].mse, 10 * r[2].mse) << ratio;
  }
}

}  // namespace
}  // namespace affpcl::testing
