#include "affpcl/mixed/learnt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "affpcl/math/statistics.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/table/worlds_test.h"

namespace affpcl {
namespace {

Learnt learnt(const TableWorld& world) {
  const auto team = serial_team();
  return learn_agents(world.frame().moments(0, -1, *team), {}, *team);
}

double largest_log(const std::vector<double>& factors) {
  double largest = 0;
  for (double v : factors) largest = std::max(largest, std::abs(std::log(v)));
  return largest;
}

// Equal noise: a factor beyond e^.5 in at most 6 of 60 tables.
TEST(Noise, OneNoiseForAllIsRecognised) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    wrong += largest_log(learnt({.agents = 12, .seed = seed}).noise) > 0.5;
  EXPECT_LE(wrong, 6);
}

TEST(Noise, LoudAndQuietAgentsAreToldApart) {
  const auto noise = [](std::size_t i) { return std::exp(0.2 * static_cast<double>(i % 10) - 1); };
  const TableWorld world{.agents = 30, .rows = 30, .noise = noise};
  const Learnt l = learnt(world);
  const double s2 = l.best().variances.s2;
  std::vector<double> found, truth;
  double bias = 0;
  for (std::size_t i = 0; i < world.agents; ++i) {
    found.push_back(std::log(s2 * l.noise[i]));
    truth.push_back(2 * std::log(noise(i)));
    bias += (found[i] - truth[i]) / static_cast<double>(world.agents);
  }
  EXPECT_GT(rank_correlation(found, truth), 0.9);
  // Each has a standard error of sqrt(2 / 27); their mean of .05.
  EXPECT_NEAR(bias, 0, 0.2);
}

// A quiet agent knows its own coefficients well and is not pulled to the centre by others' noise.
TEST(Noise, QuietAgentsKeepTheirOwnModel) {
  const TableWorld world{.agents = 12, .rows = 20, .spread = 0.5, .noise = [](std::size_t i) {
                           return i == 3 ? 0.02 : 2.0;
                         }};
  const auto team = serial_team();
  const Moments m = world.frame().moments(0, -1, *team);
  const auto error = [&](const Posterior& p) {
    double sum = 0;
    for (std::size_t j = 0; j < m.d; ++j) sum += std::pow(p.x[j] - world.coefficient(3, j), 2);
    return sum;
  };
  const Learnt l = learn_agents(m, {}, *team);
  EXPECT_LT(error(averaged_posterior(m, l, 3)),
            0.1 * error(agent_posterior(m, decompose(m, {}, *team).best, 3)));
}

// Mean squared error of coefficients over that of the plain BLUP, 20 tables each. studies/tables
// measures these ratios on 100 tables; the limits here leave five standard errors.
struct Excess {
  double averaged = 0, plain = 0;
  double ratio() const { return averaged / plain; }
};
Excess excess_over(const TableWorld& world, double moved = 0) {
  Excess sum;
  const auto team = serial_team();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TableWorld w = world;
    w.seed = seed;
    Moments m = w.frame().moments(0, -1, *team);
    if (moved != 0) {  // agent 0 has other coefficients
      const Vector away(m.d, moved);
      const MatrixView A(m.A.data(), m.d, m.d);
      const Vector more = multiply(A, away);
      m.yy[0] += 2 * dot({m.b.data(), m.d}, away) + dot(more, away);
      for (std::size_t j = 0; j < m.d; ++j) m.b[j] += more[j];
    }
    const Learnt l = learn_agents(m, {}, *team);
    const Decomposition plain = decompose(m, {.full = false}, *team).best;
    for (std::size_t i = 0; i < m.n; ++i) {
      const Posterior a = averaged_posterior(m, l, i), b = agent_posterior(m, plain, i);
      for (std::size_t j = 0; j < m.d; ++j) {
        const double truth = w.coefficient(i, j) + (i == 0 ? moved : 0);
        sum.averaged += std::pow(a.x[j] - truth, 2);
        sum.plain += std::pow(b.x[j] - truth, 2);
      }
    }
  }
  return sum;
}

TEST(Learnt, AgentsThatDifferInNoiseGain) {
  const auto noise = [](std::size_t i) {
    return std::exp(0.35 * static_cast<double>(i % 5) - 0.7);
  };
  EXPECT_LT(excess_over({.agents = 40, .rows = 8, .noise = noise}).ratio(), 0.9);
}

TEST(Learnt, AStrangerDoesNotSpoilTheOthers) {
  EXPECT_LT(excess_over({.agents = 12, .rows = 24, .columns = 6, .spread = 0.2}, 2).ratio(), 0.8);
}

TEST(Learnt, NormalAgentsLoseHardlyAnything) {
  EXPECT_LT(excess_over({.agents = 40, .rows = 8}).ratio(), 1.03);
  EXPECT_LT(excess_over({.agents = 8, .rows = 20}).ratio(), 1.06);
}

// Five rows for nine coefficients say nothing of how far out an agent is.
TEST(Learnt, FewRowsDoNotMakeAnAgentOutlying) {
  const auto team = serial_team();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const TableWorld many{.agents = 30, .rows = 20, .columns = 8, .seed = seed};
    TableWorld few = many;
    few.rows = 5;
    Moments m = many.frame().moments(0, -1, *team);
    const Moments short_of = few.frame().moments(0, -1, *team);
    std::copy_n(short_of.A.begin(), m.d * m.d, m.A.begin());
    std::copy_n(short_of.b.begin(), m.d, m.b.begin());
    m.yy[0] = short_of.yy[0], m.rows[0] = short_of.rows[0];
    const Learnt l = learn_agents(m, {}, *team);
    EXPECT_LT(l.moments.wide[0], 2) << seed;
  }
}

// The forms' weights sum to 1, and a full D that six agents do not determine does not take over.
TEST(Learnt, FormsAreAveraged) {
  const Learnt l = learnt({.agents = 6, .rows = 6});
  double all = 0, full = 0;
  for (const WeightedForm& f : l.forms) {
    all += f.weight;
    if (f.model.covariance == Covariance::kFull) full = f.weight;
  }
  EXPECT_NEAR(all, 1, 1e-12);
  EXPECT_GT(l.forms.size(), 1);
  EXPECT_LT(full, 0.5);
}

TEST(Learnt, SameBitsOnAnyNumberOfThreads) {
  const Moments m = [] {
    const auto team = serial_team();
    return TableWorld{.agents = 45, .rows = 8}.frame().moments(0, -1, *team);
  }();
  const auto one = serial_team(), three = thread_team(3);
  const Learnt a = learn_agents(m, {}, *one), b = learn_agents(m, {}, *three);
  EXPECT_EQ(a.noise, b.noise);
  EXPECT_EQ(a.moments.wide, b.moments.wide);
  EXPECT_EQ(a.best().variances.D, b.best().variances.D);
  for (std::size_t i : {std::size_t{0}, std::size_t{44}}) {
    EXPECT_EQ(averaged_posterior(m, a, i).x, averaged_posterior(m, b, i).x);
    EXPECT_EQ(averaged_posterior(m, a, i).cov, averaged_posterior(m, b, i).cov);
  }
}

TEST(Noise, OneAgentHasOneNoise) { EXPECT_EQ(learnt({.agents = 1}).noise, Vector(1, 1.0)); }

}  // namespace
}  // namespace affpcl
