// Learnt ratios inside a whole run: where there is little or nothing to learn from, where features
// are not finite, and how fast they learn.
#include "affpcl/density/learnt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/density/enumerate_test.h"
#include "affpcl/math/statistics.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/problem/tabular.h"
#include "tests/conformance.h"

namespace affpcl {
namespace {

using conformance::Given;
using Loop = Run;

// x of all agents after so many steps with each of the methods, one after the other.
std::vector<double> played(const Problem& problem, const std::string& kind_name,
                           const std::vector<Given>& methods, std::int64_t steps) {
  const MethodKind& kind = method_kind(kind_name);
  std::vector<RunMethod> made;
  for (const Given& given : methods) {
    RunMethod m;
    m.name = std::to_string(made.size());
    m.method = kind.make(Values(kind.params, given, "method"));
    for (StepSizes::Module* module :
         {&m.step.agent, &m.step.central, &m.step.objective, &m.step.ratio})
      module->schedule.value = 0.01;
    made.push_back(std::move(m));
  }
  RunOptions options;
  options.steps = steps;
  const auto team = serial_team();
  Loop run(problem, std::move(made), options, *team);
  run.advance(steps);
  std::vector<double> x;
  for (std::size_t m = 0; m < methods.size(); ++m)
    for (std::int64_t i = 0; i < problem.shape().agents; ++i)
      for (int r = 0; r < problem.shape().d; ++r) x.push_back(run.solution(m, i, r));
  return x;
}

std::vector<Given> learnt_kinds(bool finite) {
  std::vector<Given> kinds = {
      {{"ratio", "linear"}}, {{"ratio", "sparse"}}, {{"ratio", "fixed-point"}}};
  if (finite)
    for (const char* ratio : {"counts", "coupled"}) kinds.push_back({{"ratio", ratio}});
  return kinds;
}

Tabular finite(std::int64_t agents) {
  return {Tabular::generate({.agents = agents, .delta_env = 0.8}, 3, 0), Tabular::Coe::kAuto};
}

// Ratios of the past know nothing in the first round, so it is the round without ratios.
TEST(LearntRatios, AgentsWithoutSamplesHaveRatioOne) {
  const Tabular tabular = finite(5);
  const Gaussian gaussian({.agents = 5, .dim = 2}, 1, 0);
  for (const Problem* problem :
       {static_cast<const Problem*>(&tabular), static_cast<const Problem*>(&gaussian)}) {
    const std::vector<double> none = played(*problem, "affpcl", {{{"ratio", "none"}}}, 1);
    for (const Given& kind : learnt_kinds(problem == &tabular)) {
      const std::vector<double> x = played(*problem, "affpcl", {kind}, 1);
      for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(x[k], none[k], 1e-15);
    }
  }
}

TEST(LearntRatios, OneAgentLearnsAloneToTheBit) {
  const Tabular tabular = finite(1);
  const Gaussian gaussian({.agents = 1, .dim = 2}, 1, 0);
  for (const Problem* problem :
       {static_cast<const Problem*>(&tabular), static_cast<const Problem*>(&gaussian)}) {
    const std::vector<double> alone = played(*problem, "independent", {{}}, 40);
    for (const Given& kind : learnt_kinds(problem == &tabular))
      EXPECT_EQ(played(*problem, "affpcl", {kind}, 40), alone)
          << std::get<std::string>(kind.at("ratio"));
  }
}

// Two agents, 128 features: after ten rounds the Gram matrix has rank 20 at most. At samples unlike
// those seen the ratio is then a guess; it stays finite, and a small ridge keeps it tame.
TEST(LearntRatios, MoreFeaturesThanSamples) {
  const Gaussian gaussian({.agents = 2, .dim = 2, .delta_env = 0.5}, 1, 0);
  const std::vector<double> none = played(gaussian, "affpcl", {{{"ratio", "none"}}}, 10);
  for (const char* features : {"fourier", "bumps"})
    for (const char* counting : {"past", "current"})
      for (const char* shrink : {"james-stein", "none"})
        for (const double ridge : {0.0, 1e-3}) {
          const Given given = {{"ratio", "linear"},      {"features", features},
                               {"counting", counting},   {"shrink", shrink},
                               {"p", std::int64_t{128}}, {"ridge", ridge}};
          const std::vector<double> x = played(gaussian, "affpcl", {given}, 10);
          for (std::size_t k = 0; k < x.size(); ++k) {
            EXPECT_TRUE(std::isfinite(x[k])) << features;
            if (ridge > 0) {
              EXPECT_NEAR(x[k], none[k], 0.1) << features << ' ' << counting << ' ' << shrink;
            }
          }
        }
}

// A problem with continuous samples that offers features of its own: they cannot all be looked at
// before the run. With `twice` they depend on each other.
class Offering final : public Problem, public LinearObjective, public Means, public RatioFeatures {
 public:
  enum class Kind { kTwice, kNaN, kHuge };
  explicit Offering(Kind kind) : kind_(kind) { solve(); }
  Shape shape() const override { return {.agents = 3, .d = 1, .k = 1, .p = 3}; }
  void declare(Layout&, Layout& sample) const override { sample.add("s", 1); }
  void draw(const Draw& draw, Agents world, Out s) const override {
    normals(draw.key, world.lanes, Purpose::kSample, 0, s);
  }
  void objective(Lanes, In s, Out b) const override { copy(s, b); }
  void direction(Lanes, In, In b, In x, Scratch&, Out g) const override {
    copy(x, g);
    subtract_objective(b, g);
  }
  Facets facets() const override { return {.linear = this, .means = this, .features = this}; }
  void Phi(Lanes, In s, In, Scratch&, Out bhat) const override { copy(s, bhat); }
  void psi(Lanes lanes, In s, Out features) const override {
    fill(features, 1);
    for (int l = 0; l < lanes.count; ++l) {
      const double x = s.p[l];
      features.row(1)[l] = x;
      features.row(2)[l] = kind_ == Kind::kTwice ? 1 - 2 * x
                           : x < 1.5             ? x * x
                           : kind_ == Kind::kNaN ? std::numeric_limits<double>::quiet_NaN()
                                                 : 1e200;
    }
  }
  void mean_apply(Lanes, In x, Out Ax) const override { copy(x, Ax); }
  void mean_objective(Lanes, Out b) const override { fill(b, 0); }
  void mean_Phi(Lanes, In theta, Out bhat) const override { copy(theta, bhat); }

 private:
  Kind kind_;
};

TEST(LearntRatios, FeaturesThatAreNoNumbersEndTheRun) {
  for (const Offering::Kind bad : {Offering::Kind::kNaN, Offering::Kind::kHuge})
    for (const Given& kind : learnt_kinds(false)) try {
        played(Offering(bad), "affpcl", {kind}, 200);
        ADD_FAILURE() << "no complaint";
      } catch (const BadInput& e) {
        EXPECT_EQ(std::string(e.what()).find("a feature of the ratio is not finite"), 0u);
      }
}

TEST(LearntRatios, FeaturesThatDependOnEachOtherAreNoTrouble) {
  for (const Given& kind : learnt_kinds(false))
    for (const double x : played(Offering(Offering::Kind::kTwice), "affpcl", {kind}, 200))
      EXPECT_LT(std::abs(x), 1) << std::get<std::string>(kind.at("ratio"));
}

// The inverse of the Gram matrix is renewed when the samples have grown by 2 %; in between, one-hot
// features part from the counts by far less than that.
TEST(LearntRatios, TheInverseOfTheGramMatrixIsNeverFarBehind) {
  const Tabular problem = finite(6);
  const std::int64_t steps = 600;
  const std::size_t each = 6 * 3;
  const std::vector<double> x =
      played(problem, "affpcl", {{{"ratio", "counts"}}, {{"ratio", "linear"}}, {{"ratio", "none"}}},
             steps);
  double apart = 0, matters = 0;
  for (std::size_t k = 0; k < each; ++k) {
    apart = std::max(apart, std::abs(x[k] - x[each + k]));
    matters = std::max(matters, std::abs(x[k] - x[2 * each + k]));
  }
  EXPECT_GT(apart, 0);  // or nothing was left out
  EXPECT_LT(apart, 0.005 * matters);
}

// Five means of 200 runs, each about chi-squared with five degrees of freedom: relative standard
// errors of .045, so about .02 for the slope over four doublings, and +-.1 is five of them.
TEST(StatisticsDensity, TheErrorOfALearntRatioFallsAsOneOverT) {
  const Tabular system(Tabular::generate({.agents = 6, .states = 6, .delta_env = 0.8}, 9, 0),
                       Tabular::Coe::kAuto);
  for (const Given& given :
       {Given{{"ratio", "counts"}, {"counting", "current"}},
        Given{{"ratio", "counts"}, {"counting", "current"}, {"shrink", "none"}},
        Given{{"ratio", "linear"}, {"counting", "current"}}, Given{{"ratio", "coupled"}}}) {
    const std::vector<int> times = {64, 128, 256, 512, 1024};
    const std::vector<double> error = enumeration::risk(system, given, times, 200);
    std::vector<double> x, y;
    for (std::size_t k = 0; k < times.size(); ++k)
      x.push_back(std::log(times[k])), y.push_back(std::log(error[k]));
    EXPECT_NEAR(slope(x, y).mean, -1, 0.1) << std::get<std::string>(given.at("ratio"));
  }
}

// Paired over 30 replicates, T = 2000: t of the differences above the .001 quantile.
TEST(StatisticsDensity, LearntRatiosBeatNoneFromDeltaThree) {
  for (const double delta : {0.3, 0.8}) {
    std::vector<double> gain[2];
    for (std::uint32_t replicate = 0; replicate < 30; ++replicate) {
      const Tabular system(
          Tabular::generate({.agents = 10, .delta_env = delta, .delta_obj = delta}, 31, replicate),
          Tabular::Coe::kAuto);
      std::vector<RunMethod> methods;
      for (const char* ratio : {"none", "counts", "linear"}) {
        const MethodKind& kind = method_kind("affpcl");
        RunMethod m;
        m.name = ratio;
        m.method = kind.make(Values(kind.params, {{"ratio", ratio}}, "method"));
        methods.push_back(std::move(m));
      }
      RunOptions options;
      options.steps = 2000;
      options.seed = 31;
      options.replicate = replicate;
      const auto team = serial_team();
      Loop run(system, std::move(methods), options, *team);
      run.advance(2000);
      const std::vector<Record>& r = run.finish();
      for (std::size_t k = 0; k < 2; ++k) gain[k].push_back(r[0].mse - r[k + 1].mse);
    }
    for (const std::vector<double>& g : gain) {
      const double m = mean(g);
      double square = 0;
      for (const double x : g) square += (x - m) * (x - m);
      EXPECT_GT(m / std::sqrt(square / 29 / 30), student_quantile(0.999, 29)) << delta;
    }
  }
}

}  // namespace
}  // namespace affpcl
