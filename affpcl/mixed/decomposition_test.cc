#include "affpcl/mixed/decomposition.h"

#include <numbers>

#include "affpcl/mixed/evidence.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/mixed/ridge.h"
#include "affpcl/random/streams.h"
#include "tests/algebra.h"

namespace affpcl {
namespace {

// Tables with a known truth: x_i = x_c + sd * z, noise of variance noise^2.
struct World {
  std::size_t agents = 20, d = 3, rows = 20;
  double noise = 1;
  std::vector<double> sd = {1, 0.5, 0.2};
  std::uint64_t seed = 1;

  std::vector<double> truth(std::size_t i) const {
    std::vector<double> x(d);
    for (std::size_t j = 0; j < d; ++j)
      x[j] = 1 + sd[j] * normal({.seed = seed}, static_cast<std::int64_t>(i), Purpose::kObjective,
                                static_cast<std::uint32_t>(j));
    return x;
  }
  Moments moments() const {
    Moments m(agents, d);
    std::vector<double> x(d, 1.0);
    for (std::size_t i = 0; i < agents; ++i) {
      const std::vector<double> w = truth(i);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto draw = [&](std::size_t j) {
          return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(r)},
                        static_cast<std::int64_t>(i), Purpose::kSample,
                        static_cast<std::uint32_t>(j));
        };
        double y = noise * draw(0) + w[0];
        for (std::size_t j = 1; j < d; ++j) y += w[j] * (x[j] = draw(j));
        m.add(i, x, y);
      }
    }
    return m;
  }
};

Matrix matrix(const std::vector<double>& v, std::size_t at, std::size_t d) {
  return MatrixView(v.data() + at * d * d, d, d);
}
Vector vector(const std::vector<double>& v, std::size_t at, std::size_t d) {
  return part(v, at * d, d);
}

double distance(const Vector& a, const Vector& b) { return largest(a - b); }

Variances diagonal(std::vector<double> D, double s2) {
  Variances v{.D = std::vector<double>(D.size() * D.size()), .s2 = s2};
  for (std::size_t j = 0; j < D.size(); ++j) v.D[j * D.size() + j] = D[j];
  return v;
}

Variances full_variances(std::size_t d, double s2) {
  Variances v{.D = std::vector<double>(d * d, 0.2), .s2 = s2};
  for (std::size_t j = 0; j < d; ++j) v.D[j * d + j] = 1 + static_cast<double>(j);
  return v;
}

TEST(Decomposition, KnownVariancesGiveRidgeToTheCentre) {
  const Moments m = World{}.moments();
  const std::vector<double> D = {0.7, 0.3, 0.1};
  const auto team = serial_team();
  const Decomposition model = decompose_known(m, diagonal(D, 0.5), 0, *team);
  const Vector& centre = model.centre;
  for (std::size_t i = 0; i < m.n; ++i) {
    Matrix ridge = matrix(m.A, i, 3);
    for (std::size_t j = 0; j < 3; ++j) ridge(j, j) += 0.5 / D[j];
    const Vector x = centre + solve(ridge, vector(m.b, i, 3) - matrix(m.A, i, 3) * centre);
    EXPECT_LT(distance(agent_posterior(m, model, i).x, x), 1e-11);
  }
  // The centre is stationary: the mean pull of the agents on it is 0.
  Vector pull(3);
  for (std::size_t i = 0; i < m.n; ++i)
    pull += vector(m.b, i, 3) - matrix(m.A, i, 3) * agent_posterior(m, model, i).x;
  EXPECT_LT(largest(pull), 1e-9);
}

TEST(Decomposition, BalancedOneWayIsAnalysisOfVariance) {
  // An intercept only, r rows an agent: s^2 = within, D = (between - within) / r, means shrunk by
  // r D / (r D + s^2), all in closed form.
  const World world{.agents = 12, .d = 1, .rows = 8, .sd = {0.8}};
  const Moments m = world.moments();
  const double r = 8, n = 12;
  double grand = 0, within = 0, between = 0;
  for (std::size_t i = 0; i < m.n; ++i) grand += m.b[i] / r / n;
  for (std::size_t i = 0; i < m.n; ++i) {
    const double mean = m.b[i] / r;
    within += (m.yy[i] - r * mean * mean) / (n * (r - 1));
    between += r * (mean - grand) * (mean - grand) / (n - 1);
  }
  ASSERT_GT(between, within);
  const double D = (between - within) / r;
  const auto team = serial_team();
  const Chosen chosen =
      decompose(m, {.tolerance = 1e-11, .centre_precision = 0, .full = false}, *team);
  const Decomposition& model = chosen.best;
  EXPECT_NEAR(model.variances.s2, within, 1e-8 * within);
  EXPECT_NEAR(model.variances.D[0], D, 1e-8 * D);
  EXPECT_NEAR(model.centre[0], grand, 1e-10);
  EXPECT_NEAR(model.centre_cov[0], between / (n * r), 1e-8);
  const double share = r * D / (r * D + within);
  for (std::size_t i = 0; i < m.n; ++i)
    EXPECT_NEAR(agent_posterior(m, model, i).x[0], grand + share * (m.b[i] / r - grand), 1e-8);
}

TEST(Decomposition, BalancedOneWayByMaximumLikelihoodDividesByAllAgents) {
  // As above, but the squares between agents are divided by n, not n - 1.
  const World world{.agents = 5, .d = 1, .rows = 8, .sd = {0.8}};
  const Moments m = world.moments();
  const double r = 8, n = 5;
  double grand = 0, within = 0, squares = 0;
  for (std::size_t i = 0; i < m.n; ++i) grand += m.b[i] / r / n;
  for (std::size_t i = 0; i < m.n; ++i) {
    const double mean = m.b[i] / r;
    within += (m.yy[i] - r * mean * mean) / (n * (r - 1));
    squares += r * (mean - grand) * (mean - grand);
  }
  const double between = squares / n;
  ASSERT_GT(between, within);
  const auto team = serial_team();
  DecompositionOptions o{.tolerance = 1e-11, .centre_precision = 0, .full = false};
  const Variances reml = decompose(m, o, *team).best.variances;
  o.restricted = false;
  const Decomposition ml = decompose(m, o, *team).best;
  EXPECT_NEAR(ml.variances.s2, within, 1e-8 * within);
  EXPECT_NEAR(ml.variances.D[0], (between - within) / r, 1e-8 * between);
  EXPECT_NEAR(ml.centre[0], grand, 1e-10);
  EXPECT_NEAR(ml.log_evidence,
              -(n * r * (std::log(2 * std::numbers::pi) + 1) + n * (r - 1) * std::log(within) +
                n * std::log(between)) /
                  2,
              1e-9);
  // r D + s^2 of REML is larger by n / (n - 1).
  EXPECT_NEAR((r * reml.D[0] + reml.s2) / (r * ml.variances.D[0] + ml.variances.s2), n / (n - 1),
              1e-7);
  EXPECT_LT(ml.variances.D[0], reml.D[0]);
}

TEST(Decomposition, TheSlopesOfTheLikelihoodAreItsDerivatives) {
  const auto team = serial_team();
  const double h = 1e-5, s2 = 0.8;
  for (const bool few : {false, true})  // rows: agents are then of low rank
    for (const bool diagonal : {true, false}) {
      const std::size_t d = few ? 8 : 3;
      const Moments m =
          World{.d = d, .rows = few ? 4u : 20u, .sd = std::vector<double>(d, 0.5)}.moments();
      Evidence evidence(m, 0.01, *team, false), reml(m, 0.01, *team);
      Matrix D(d, d);
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k < d; ++k)
          D(j, k) = j == k ? 0.5 + 0.1 * static_cast<double>(j) : diagonal ? 0 : 0.1;
      const auto at = [&](std::size_t j, std::size_t k, double step, double noise) {
        Matrix moved = D;
        moved(j, k) += step;
        if (j != k) moved(k, j) += step;
        return evidence(moved, noise, diagonal).log_evidence;
      };
      reml(D, s2, diagonal);
      evidence(D, s2, diagonal);
      const EvidenceSlopes s = evidence.slopes(), restricted = reml.slopes();
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t k = 0; k <= j; ++k) {
          if (j != k && diagonal) continue;
          const double slope = (s.G(j, k) - s.T(j, k)) / (j == k ? 2 : 1);
          EXPECT_NEAR(slope, (at(j, k, h, s2) - at(j, k, -h, s2)) / (2 * h), 1e-5) << j << k;
        }
      EXPECT_NEAR((s.ee - s.trace_P) / 2, (at(0, 0, 0, s2 + h) - at(0, 0, 0, s2 - h)) / (2 * h),
                  1e-4);
      // The average information is that of the restricted likelihood.
      VarianceGroups one{std::vector<std::size_t>(d, 0), 1};
      const Matrix ours = s.information(one).AI, theirs = restricted.information(one).AI;
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(ours.all()[k], theirs.all()[k], 1e-9 * std::abs(theirs.all()[k]));
    }
}

TEST(Decomposition, IdenticalAgentsHaveThePooledModel) {
  const Moments one = World{.agents = 1}.moments();
  Moments m(6, 3);
  for (std::size_t i = 0; i < m.n; ++i) {
    std::copy(one.A.begin(), one.A.end(), m.A.begin() + static_cast<std::ptrdiff_t>(i * 9));
    std::copy(one.b.begin(), one.b.end(), m.b.begin() + static_cast<std::ptrdiff_t>(i * 3));
    m.yy[i] = one.yy[0], m.rows[i] = one.rows[0];
  }
  const auto team = serial_team();
  const Decomposition model = decompose(m, {.centre_precision = 0}, *team).best;
  const Vector ols = solve(matrix(one.A, 0, 3), vector(one.b, 0, 3));
  for (double v : model.variances.D) EXPECT_EQ(v, 0);
  EXPECT_LT(distance(model.centre, ols), 1e-11);
  EXPECT_LT(distance(agent_posterior(m, model, 3).x, ols), 1e-11);
}

// Agents with fewer rows than coefficients are computed by rank. More rows on paper, with the same
// X'X, take the other way; they add -(log 2 pi + log s^2) / 2 each and change nothing else.
TEST(Decomposition, FewRowsAreComputedByRank) {
  const std::vector<double> D = {1, 0.3, 0.5, 0, 2, 0.1, 0.1, 3};
  const Moments few = World{.agents = 6, .d = 8, .rows = 3, .sd = D}.moments();
  Moments many = few;
  for (double& rows : many.rows) rows += 100;
  const auto team = serial_team();
  for (const Variances& at : {diagonal(D, 0.4), full_variances(8, 0.4)}) {
    const Decomposition a = decompose_known(few, at, 0.01, *team),
                        b = decompose_known(many, at, 0.01, *team);
    EXPECT_NEAR(a.log_evidence - b.log_evidence, 300 * std::log(2 * std::numbers::pi * 0.4), 1e-8);
    EXPECT_LT(distance(a.centre, b.centre), 1e-9);
    EXPECT_LT(distance(a.centre_cov, b.centre_cov), 1e-9);
  }
  // The climb's slopes: at equal s^2 the same D is best.
  Evidence x(few, 0.01, *team), y(many, 0.01, *team);
  for (const bool is_diagonal : {true, false}) {
    const Variances at = is_diagonal ? diagonal(D, 0.4) : full_variances(8, 0.4);
    x(matrix(at.D, 0, 8), 0.4, is_diagonal), y(matrix(at.D, 0, 8), 0.4, is_diagonal);
    const EvidenceSlopes s = x.slopes(), t = y.slopes();
    EXPECT_LT(distance(s.G.all(), t.G.all()), 1e-9);
    EXPECT_LT(distance(s.T.all(), t.T.all()), 1e-9);
    EXPECT_LT(distance(s.cross.all(), t.cross.all()), 1e-9);
    EXPECT_NEAR(t.trace_P - s.trace_P, 600 / 0.4, 1e-8);
  }
}

TEST(Decomposition, HugeSpreadIsLearningAlone) {
  const Moments m = World{}.moments();
  const auto team = serial_team();
  const Decomposition model = decompose_known(m, diagonal({1e7, 1e7, 1e7}, 1), 0, *team);
  for (std::size_t i = 0; i < m.n; ++i)
    EXPECT_LT(distance(agent_posterior(m, model, i).x, solve(matrix(m.A, i, 3), vector(m.b, i, 3))),
              1e-6);
}

TEST(Decomposition, FindsTheVariancesOfALargeWorld) {
  const World world{.agents = 1500, .rows = 12};
  const auto team = serial_team();
  const Chosen chosen = decompose(world.moments(), {}, *team);
  EXPECT_EQ(chosen.best.covariance, Covariance::kDiagonal);
  EXPECT_TRUE(chosen.best.converged);
  // 1500 agents: relative standard errors of about sqrt(2/1500) = .037 and more; limits of five.
  EXPECT_NEAR(chosen.best.variances.D[0], 1, 0.25);
  EXPECT_NEAR(chosen.best.variances.D[4], 0.25, 0.07);
  EXPECT_NEAR(chosen.best.variances.D[8], 0.04, 0.03);
  EXPECT_NEAR(chosen.best.variances.s2, 1, 0.06);
}

TEST(Decomposition, EvidenceChoosesTheSpread) {
  const auto team = serial_team();
  const World alike{.agents = 60, .sd = {0.5, 0.5, 0.5}};
  EXPECT_EQ(decompose(alike.moments(), {}, *team).best.covariance, Covariance::kScalar);
  const World apart{.agents = 60, .sd = {2, 0.05, 0.5}};
  EXPECT_EQ(decompose(apart.moments(), {}, *team).best.covariance, Covariance::kDiagonal);
}

// Two columns whose residuals move together.
TEST(Decomposition, EvidenceChoosesAFullSpread) {
  const World world{.agents = 80, .d = 3, .rows = 20, .sd = {0.5, 1, 0}};
  Moments m(80, 3);
  std::vector<double> x(3, 1.0);
  for (std::size_t i = 0; i < m.n; ++i) {
    const std::vector<double> w = world.truth(i);
    for (std::uint32_t r = 0; r < 20; ++r) {
      const auto draw = [&](std::uint32_t j) {
        return normal({.seed = 9, .replicate = 0, .step = r}, static_cast<std::int64_t>(i),
                      Purpose::kSample, j);
      };
      x[1] = draw(1), x[2] = draw(2);
      m.add(i, x, w[0] + w[1] * (x[1] + x[2]) + draw(0));
    }
  }
  const auto team = serial_team();
  const Decomposition best = decompose(m, {.plain = true}, *team).best;
  EXPECT_EQ(best.covariance, Covariance::kFull);
  EXPECT_GT(best.variances.D[5] / std::sqrt(best.variances.D[4] * best.variances.D[8]), 0.9);
}

TEST(Decomposition, SameBitsOnAnyNumberOfThreads) {
  const Moments m = World{.agents = 45}.moments();
  const auto serial = serial_team();
  const Chosen one = decompose(m, {}, *serial);
  for (int threads : {2, 3, 8}) {
    const auto team = thread_team(threads);
    const Chosen many = decompose(m, {}, *team);
    EXPECT_EQ(many.best.variances.D, one.best.variances.D);
    EXPECT_EQ(many.best.variances.s2, one.best.variances.s2);
    EXPECT_EQ(many.best.centre, one.best.centre);
    EXPECT_EQ(many.best.log_evidence, one.best.log_evidence);
  }
}

TEST(Decomposition, DegenerateTablesGiveFiniteModels) {
  const auto team = serial_team();
  for (const World& world :
       {World{.agents = 1}, World{.agents = 1, .rows = 1}, World{.agents = 2, .rows = 1},
        World{.agents = 5, .rows = 2}, World{.agents = 3, .noise = 0, .sd = {0, 0, 0}},
        World{.agents = 4, .rows = 30, .noise = 0}}) {
    Moments m = world.moments();
    for (const bool empty : {false, true}) {
      if (empty) {  // an agent that has no row at all
        std::fill_n(m.A.begin(), 9, 0.0);
        std::fill_n(m.b.begin(), 3, 0.0);
        m.yy[0] = m.rows[0] = 0;
        if (m.n == 1) continue;
      }
      const Decomposition model = decompose(m, {}, *team).best;
      EXPECT_TRUE(std::isfinite(model.log_evidence));
      for (std::size_t i = 0; i < m.n; ++i) {
        const Posterior p = agent_posterior(m, model, i);
        for (double v : p.x) EXPECT_TRUE(std::isfinite(v));
        for (std::size_t j = 0; j < 3; ++j) EXPECT_GE(p.cov[j * 4], 0);
      }
      if (empty) {
        const Posterior p = agent_posterior(m, model, 0), unseen = unseen_posterior(model);
        for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(p.x[j], unseen.x[j], 1e-12);
        for (std::size_t j = 0; j < 9; ++j)
          EXPECT_NEAR(p.cov[j], unseen.cov[j], 1e-9 * (1 + std::abs(p.cov[j])));
      }
    }
  }
}

// 90 % intervals of coefficients over 100 tables of 20 agents: 6000 of them, about 90 % inside.
// Agents of a table share its D, so tables are the sample: the standard error is about 1 %.
TEST(Decomposition, IntervalsHoldTheTruth) {
  const auto team = serial_team();
  double inside = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const World world{.rows = 10, .seed = seed};
    const Moments m = world.moments();
    const Decomposition model = decompose(m, {}, *team).best;
    for (std::size_t i = 0; i < m.n; ++i) {
      const Posterior p = agent_posterior(m, model, i);
      const std::vector<double> x = world.truth(i);
      for (std::size_t j = 0; j < 3; ++j)
        ++all, inside += std::abs(p.x[j] - x[j]) <= 1.6449 * std::sqrt(p.cov[j * 4]);
    }
  }
  EXPECT_GT(inside / all, 0.85);
  EXPECT_LT(inside / all, 0.95);
}

TEST(Decomposition, AStrangerIsNotPulledToTheCentre) {
  World world{.agents = 12, .rows = 24, .sd = {0.2, 0.2, 0.2}};
  Moments m = world.moments();
  const Vector away(3, 5.0);  // agent 0 has other coefficients
  const Matrix A = matrix(m.A, 0, 3);
  const Vector b = vector(m.b, 0, 3);
  m.yy[0] += 2 * dot(b, away) + dot(away, A * away);
  for (std::size_t j = 0; j < 3; ++j) m.b[j] += (A * away)[j];
  const auto team = serial_team();
  const Learnt learnt = learn_agents(m, {}, *team);
  const Posterior stranger = averaged_posterior(m, learnt, 0);
  EXPECT_GT(stranger.widened, 2);
  EXPECT_LT(distance(stranger.x, solve(A, vector(m.b, 0, 3))), 0.1);
  int others = 0;
  for (std::size_t i = 1; i < m.n; ++i) others += averaged_posterior(m, learnt, i).widened > 1;
  EXPECT_EQ(others, 0);
}

TEST(Ridge, FollowsTheRows) {
  const Moments m = World{.agents = 2, .rows = 400}.moments();
  const Ridge r = fit_ridge(m, 1);
  const Vector ols = solve(matrix(m.A, 1, 3), vector(m.b, 1, 3));
  EXPECT_LT(distance(r.x, ols), 0.05);
  EXPECT_NEAR(r.s2, 1, 0.4);
  // The normal equations of its strength, intercept free.
  Matrix A = matrix(m.A, 1, 3);
  A(1, 1) += r.strength, A(2, 2) += r.strength;
  EXPECT_LT(distance(r.x, solve(A, vector(m.b, 1, 3))), 1e-10);
  EXPECT_LT(largest((matrix(r.inverse, 0, 3) * A - Matrix::identity(3)).all()), 1e-10);
}

TEST(Ridge, OneRowIsItsTarget) {
  Moments m(2, 3);
  m.add(0, std::vector<double>{1, 2, 3}, 7);
  const Ridge r = fit_ridge(m, 0);
  EXPECT_NEAR(r.x[0] + 2 * r.x[1] + 3 * r.x[2], 7, 1e-12);
  for (double v : fit_ridge(m, 1).x) EXPECT_EQ(v, 0);
}

}  // namespace
}  // namespace affpcl
