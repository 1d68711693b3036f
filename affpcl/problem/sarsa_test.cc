// On-policy control against the exact solvers of mdp.h.
#include "affpcl/problem/sarsa.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/base/error.h"
#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/rows_test.h"

namespace affpcl {
namespace {

using Numbers = std::vector<double>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr Sarsa::Config kSmall{.agents = 3,
                               .states = 4,
                               .actions = 3,
                               .dim = 5,
                               .gamma = 0.6,
                               .temperature = 0.5,
                               .delta_env = 0.8,
                               .delta_obj = 0.5};
constexpr int kS = 4, kA = 3, kD = 5;
constexpr Lanes kAll{0, 3};

Vector phi(const Sarsa& p, int cell) { return part(p.features(), at(cell * kD), kD); }
Numbers values(const Sarsa& p, const Vector& x) {
  Numbers q;
  for (int c = 0; c < kS * kA; ++c) q.push_back(dot(phi(p, c), x));
  return q;
}
Numbers policy(const Sarsa& p, const Vector& x) {
  return softmax_policy(kA, values(p, x), kSmall.temperature);
}
// stationary(o) pi(a|o), by the solvers of mdp.h
Numbers visited(const Mdp& mdp, const Numbers& pi) {
  Numbers law = stationary(under_policy(mdp, pi));
  Numbers out;
  for (int c = 0; c < kS * kA; ++c) out.push_back(law[at(c / kA)] * pi[at(c)]);
  return out;
}
BlockRows some_x(double scale = 1) {
  BlockRows x(kD);
  for (int r = 0; r < kD; ++r)
    for (int l = 0; l < 3; ++l) x.out().row(r)[l] = scale * std::sin(1 + r + 3.0 * l);
  return x;
}
Vector solution(const Sarsa& p, int i) {
  Vector x;
  for (int r = 0; r < kD; ++r) x.push_back(p.truth()->x.block(0)[{0, kD}].row(r)[i]);
  return x;
}

// A sample's rows: state, action, next, uniform, reward.
TEST(Sarsa, DrawsOneTrajectoryAndAppliesTheActionItTakes) {
  const Sarsa p(kSmall, 1, 0);
  const BlockRows x = some_x(), Ax(kD), b(kD);
  const Buffer memory(2 * kLanes);
  BlockRows before(5), now(5);
  for (std::uint32_t step = 0; step < 200; ++step) {
    p.draw({{1, 0, step}, x.out()}, {kAll, memory.data()}, now.out());
    for (int l = 0; l < 3 && step > 0; ++l) {
      EXPECT_EQ(now(0, l), before(2, l));
      const int cell = static_cast<int>(before(0, l)) * kA + static_cast<int>(before(1, l));
      const int next = static_cast<int>(now(0, l)) * kA + static_cast<int>(now(1, l));
      const Vector want = phi(p, cell) * dot(phi(p, cell) - kSmall.gamma * phi(p, next), x.lane(l));
      EXPECT_LT(norm(Ax.lane(l) - want), 1e-14);
      EXPECT_LT(norm(b.lane(l) - phi(p, cell) * p.mdp(l).R[at(cell)]), 1e-15);
    }
    apply(p, kAll, now.out(), x.out(), Ax.out());
    p.objective(kAll, now.out(), b.out());
    copy(now.out(), before.out());
  }
}

// The centre's iterate takes the action of the central policy, by the agent's own uniform.
TEST(Sarsa, TheCentreActsByTheAgentsUniform) {
  const Sarsa p(kSmall, 1, 0);
  BlockRows s(5);
  const BlockRows Ax(kD);
  const Numbers x = {3, -2, 1, 4, -3}, pi = policy(p, x);
  for (double u : {0.01, 0.2, 0.4, 0.6, 0.8, 0.99}) {
    for (int l = 0; l < 3; ++l) s.out().row(0)[l] = 1, s.out().row(1)[l] = 2, s.out().row(2)[l] = l;
    for (int l = 0; l < 3; ++l) s.out().row(3)[l] = u;
    apply(p, kAll, s.out(), {x.data(), kD, 1}, Ax.out());
    for (int o = 0; o < 3; ++o) {
      int a = 0;
      for (double sum = pi[at(o * kA)]; u >= sum; sum += pi[at(o * kA + a)]) ++a;
      const int cell = 1 * kA + 2;
      const double gap = dot(phi(p, cell) - kSmall.gamma * phi(p, o * kA + a), x);
      EXPECT_LT(norm(Ax.lane(o) - phi(p, cell) * gap), 1e-14);
    }
  }
}

TEST(Sarsa, ExactOccupancyIsTheLawOfTransitions) {
  const Sarsa p(kSmall, 2, 0);
  const Occupancy& exact = *p.facets().occupancy;
  ASSERT_EQ(exact.cells(), kS * kA * kS);
  EXPECT_EQ(exact.counted(), 0);
  const BlockRows x = some_x(3), q(exact.cells());
  Scratch scratch;
  exact.law(kAll, x.out(), {}, scratch, q.out());
  for (int l = 0; l < 3; ++l) {
    const Numbers want = visited(p.mdp(l), policy(p, x.lane(l)));
    double sum = 0;
    for (int c = 0; c < kS * kA; ++c)
      for (int next = 0; next < kS; ++next) {
        EXPECT_NEAR(q(c * kS + next, l), want[at(c)] * p.mdp(l).P[at(c * kS + next)], 1e-14);
        sum += q(c * kS + next, l);
      }
    EXPECT_NEAR(sum, 1, 1e-13);
  }
  // And a sample's cell is its (o, a, o').
  BlockRows s(5), cell(1);
  for (int l = 0; l < 3; ++l) s.out().row(0)[l] = 2, s.out().row(1)[l] = 1, s.out().row(2)[l] = l;
  exact.cell(kAll, s.out(), cell.out());
  for (int l = 0; l < 3; ++l) EXPECT_EQ(cell(0, l), (2 * kA + 1) * kS + l);
}

// The paper's estimate: visits(o) pi(a|o).
TEST(Sarsa, CountedOccupancyIsVisitsTimesThePolicy) {
  const Sarsa p(kSmall, 2, 0);
  const Occupancy& counted = *p.facets().counted_occupancy;
  ASSERT_EQ(counted.cells(), kS * kA);
  ASSERT_EQ(counted.counted(), kS);
  const BlockRows x = some_x(3), q(counted.cells()), visits(kS);
  for (int o = 0; o < kS; ++o)
    for (int l = 0; l < 3; ++l) visits.out().row(o)[l] = 10 * l + o;
  Scratch scratch;
  counted.law(kAll, x.out(), visits.out(), scratch, q.out());
  for (int l = 0; l < 3; ++l) {
    const Numbers pi = policy(p, x.lane(l));
    for (int c = 0; c < kS * kA; ++c)
      EXPECT_NEAR(q(c, l), (10 * l + c / kA) * pi[at(c)], 1e-13) << l << ' ' << c;
  }
}

// E of the direction at a point, over the law of agents that act by `acting`; a' by the policy of
// x.
Vector direction(const Sarsa& p, int i, const Vector& acting, const Vector& x) {
  const Numbers law = visited(p.mdp(i), policy(p, acting)), pi = policy(p, x);
  Vector sum(kD);
  for (int c = 0; c < kS * kA; ++c) {
    double gap = dot(phi(p, c), x) - p.mdp(i).R[at(c)];
    for (int next = 0; next < kS; ++next)
      for (int a = 0; a < kA; ++a)
        gap -= kSmall.gamma * p.mdp(i).P[at(c * kS + next)] * pi[at(next * kA + a)] *
               dot(phi(p, next * kA + a), x);
    sum += law[at(c)] * gap * phi(p, c);
  }
  return sum;
}

TEST(Sarsa, TruthsSolveTheirEquations) {
  const Sarsa p(kSmall, 3, 0);
  const Vector xc = p.truth()->xc;
  Vector centre(kD);
  for (int i = 0; i < 3; ++i) {
    const Vector x = solution(p, i);
    EXPECT_LT(norm(direction(p, i, x, x)), 1e-11);
    centre += direction(p, i, x, xc) / 3;
  }
  EXPECT_LT(norm(centre), 1e-11);
  EXPECT_GT(norm(xc - solution(p, 1)), 0.01);
}

TEST(Sarsa, ThreeErrors) {
  const auto config = [](Sarsa::Error error) {
    Sarsa::Config c = kSmall;
    c.error = error;
    return c;
  };
  const Sarsa fp(config(Sarsa::Error::kThetaFp), 4, 0), q(config(Sarsa::Error::kThetaQ), 4, 0),
      star(config(Sarsa::Error::kQStar), 4, 0);
  const BlockRows x = some_x(), rows(5), one(1);
  EXPECT_EQ(fp.more_errors(),
            (std::vector<std::string>{"theta_fp", "theta_q", "q_star", "regret", "return"}));
  fp.more_errors(kAll, x.out(), rows.out());
  const Basis basis{kS * kA, kD, fp.features()};
  for (int l = 0; l < 3; ++l) {
    const Mdp& mdp = fp.mdp(l);
    const Numbers best = value_iteration(mdp, 1e-13);
    const Numbers pi = softmax_policy(kA, best, kSmall.temperature);
    const Numbers theta_q = project(basis, visited(mdp, pi), policy_q(mdp, pi));
    double to_star = 0;
    const Numbers own = values(fp, x.lane(l));
    for (std::size_t c = 0; c < own.size(); ++c)
      to_star += (own[c] - best[c]) * (own[c] - best[c]) / static_cast<double>(own.size());
    EXPECT_NEAR(rows(0, l), squared_norm(x.lane(l) - solution(fp, l)), 1e-12);
    EXPECT_NEAR(rows(1, l), squared_norm(x.lane(l) - theta_q), 1e-10);
    EXPECT_NEAR(rows(2, l), to_star, 1e-11);
  }
  int row = 0;
  for (const Sarsa* p : {&fp, &q, &star}) {  // the one that is asked for is the error itself
    error(*p, kAll, x.out(), one.out());
    for (int l = 0; l < 3; ++l) EXPECT_EQ(one(0, l), rows(row, l));
    ++row;
  }
}

// Returns by powers of the policy's chain; regret against the best of all deterministic policies.
TEST(Sarsa, ReturnAndRegretOfItsPolicy) {
  Sarsa::Config config = kSmall;
  config.error = Sarsa::Error::kRegret;
  const Sarsa p(config, 4, 0);
  const BlockRows x = some_x(), rows(5), one(1);
  p.more_errors(kAll, x.out(), rows.out());
  error(p, kAll, x.out(), one.out());
  const auto return_of = [&](const Mdp& mdp, const Numbers& pi) {
    const Chain chain = under_policy(mdp, pi);
    Numbers law(kS, 1.0 / kS);
    double sum = 0, discount = 1;
    for (int t = 0; t < 80; ++t, discount *= kSmall.gamma) {
      Numbers next(kS);
      for (int o = 0; o < kS; ++o) {
        for (int a = 0; a < kA; ++a)
          sum += discount * law[at(o)] * pi[at(o * kA + a)] * mdp.R[at(o * kA + a)];
        for (int to = 0; to < kS; ++to) next[at(to)] += law[at(o)] * chain.P[at(o * kS + to)];
      }
      law = next;
    }
    return sum;
  };
  for (int l = 0; l < 3; ++l) {
    double best = -1e9;
    for (int code = 0; code < kA * kA * kA * kA; ++code) {
      Numbers pi(at(kS * kA));
      for (int o = 0, c = code; o < kS; ++o, c /= kA) pi[at(o * kA + c % kA)] = 1;
      best = std::max(best, return_of(p.mdp(l), pi));
    }
    const double own = return_of(p.mdp(l), policy(p, x.lane(l)));
    EXPECT_NEAR(rows(4, l), own, 1e-12);
    EXPECT_NEAR(rows(3, l), best - own, 1e-12);
    EXPECT_EQ(one(0, l), rows(3, l));
    EXPECT_GT(rows(3, l), 0.01);
  }
}

TEST(Sarsa, TabularFeaturesRepresentQ) {
  Sarsa::Config config = kSmall;
  config.dim = Sarsa::Config{}.dim;  // left open
  config.features = Sarsa::Features::kTabular;
  config.temperature = 1e-3;
  const Sarsa p(config, 3, 0);
  ASSERT_EQ(p.shape().d, kS * kA);
  for (int l = 0; l < 3; ++l) {
    Vector x;
    for (int r = 0; r < kS * kA; ++r) x.push_back(p.truth()->x.block(0)[{0, kS * kA}].row(r)[l]);
    const Numbers q = policy_q(p.mdp(l), softmax_policy(kA, x, 1e-3));
    const Numbers best = value_iteration(p.mdp(l), 1e-13);
    for (int c = 0; c < kS * kA; ++c) {
      EXPECT_NEAR(x[at(c)], q[at(c)], 1e-9);
      EXPECT_NEAR(x[at(c)], best[at(c)], 0.01);  // cold, SARSA is Q-learning
    }
  }
  config.dim = 11;
  EXPECT_THROW(Sarsa(config, 3, 0), BadInput);
}

// At low temperature policies on random features answer each other in turns: no fixed point.
TEST(Sarsa, ErrorsToQStarNeedNoFixedPoint) {
  Sarsa::Config config{.temperature = 0.1, .delta_env = 1, .delta_obj = 1};
  const auto make = [&](std::uint32_t replicate) { return Sarsa(config, 1, replicate); };
  std::uint32_t replicate = 0;
  std::string said;
  for (; said.empty() && replicate < 20; ++replicate) {
    try {
      make(replicate);
    } catch (const Failure& e) {
      said = e.what();
    }
  }
  ASSERT_NE(said.find("error = \"q_star\""), std::string::npos) << said;
  for (const Sarsa::Error error : {Sarsa::Error::kQStar, Sarsa::Error::kRegret}) {
    config.error = error;
    const Sarsa p = make(replicate - 1);
    ASSERT_NE(p.truth(), nullptr);
    const Lanes all{0, 10};
    const BlockRows rows(5), one(1);
    p.more_errors(all, p.truth()->x.block(0)[{0, 20}], rows.out());
    affpcl::error(p, all, p.truth()->x.block(0)[{0, 20}], one.out());
    for (int l = 0; l < 10; ++l) {
      EXPECT_TRUE(std::isnan(rows(0, l)));
      EXPECT_GT(one(0, l), 0);  // finite: 20 features cannot represent Q*
      EXPECT_LT(one(0, l), 10);
    }
  }
}

TEST(Sarsa, AgentsAreAlikeAtLevelZero) {
  Sarsa::Config config = kSmall;
  config.delta_env = config.delta_obj = 0;
  const Sarsa p(config, 5, 0);
  for (int i = 1; i < 3; ++i) {
    EXPECT_EQ(p.mdp(i).P, p.mdp(0).P);
    EXPECT_EQ(p.mdp(i).R, p.mdp(0).R);
    EXPECT_LT(norm(solution(p, i) - p.truth()->xc), 1e-11);
  }
}

TEST(Sarsa, RefusesADiscountOfOne) {
  Sarsa::Config config = kSmall;
  config.gamma = 1;
  try {
    const Sarsa p(config, 1, 0);
    FAIL();
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("gamma"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace affpcl
