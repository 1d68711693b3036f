// The mixed model with a second factor against dense generalised least squares.
#include "affpcl/mixed/levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "affpcl/mixed/decomposition.h"
#include "affpcl/mixed/levels_posterior.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

constexpr double kPrecision = 0.01;

// Rows with a known truth, as moments and cells and as dense matrices.
struct LevelWorld {
  bool nested = true;
  std::size_t agents = 12, levels = 4, rows = 5, d = 3;
  double tau = 1;
  bool centred = false;  // no level is above another one: their means are all 0
  std::vector<std::size_t> random = {0, 1, 2};
  std::uint64_t seed = 1;

  Moments moments = {};
  LevelCells cells = {};
  Matrix X = {};  // [rows][d]
  Vector y = {};
  std::vector<std::size_t> agent = {}, level = {};  // by row

  double draw(std::size_t i, std::size_t j, Purpose purpose = Purpose::kSample) const {
    return normal({.seed = seed}, static_cast<std::int64_t>(i), purpose,
                  static_cast<std::uint32_t>(j));
  }

  void make() {
    const std::size_t N = agents * rows;
    X = Matrix(N, d);
    y.resize(N), agent.resize(N), level.resize(N);
    for (std::size_t r = 0; r < N; ++r) {
      const std::size_t i = agent[r] = r / rows;
      level[r] = nested ? i % levels : (i + r * r) % levels;
      X(r, 0) = 1;
      y[r] = draw(r, 0) + tau * draw(level[r], 7, Purpose::kObjective);
      for (std::size_t j = 1; j < d; ++j) X(r, j) = draw(r, j) + 0.5;
      for (std::size_t j = 0; j < d; ++j)
        y[r] += X(r, j) * (1 + 0.6 * draw(i, j, Purpose::kObjective));
    }
    if (centred) centre();
    fill();
  }

  void centre() {
    Vector sum(levels), count(levels);
    for (std::size_t r = 0; r < y.size(); ++r) sum[level[r]] += y[r], ++count[level[r]];
    for (std::size_t r = 0; r < y.size(); ++r) y[r] -= sum[level[r]] / count[level[r]];
  }

  void fill() {
    moments = Moments(agents, d);
    cells.levels = levels, cells.nested = nested;
    for (std::size_t i = 0; i < agents; ++i) {
      for (std::size_t g = 0; g < levels; ++g) {
        Vector sum(d + 1);
        for (std::size_t r = i * rows; r < (i + 1) * rows; ++r) {
          if (level[r] != g) continue;
          moments.add(i, X.row(r), y[r]);
          for (std::size_t j = 0; j < d; ++j) sum[j] += X(r, j);
          sum[d] += y[r];
        }
        if (sum[0] == 0) continue;
        cells.level.push_back(g);
        cells.X.insert(cells.X.end(), sum.begin(), sum.end() - 1);
        cells.y.push_back(sum[d]);
      }
      cells.first.push_back(cells.level.size());
    }
  }

  // dV / dvariance: 0 .. q - 1 of D, then tau^2, then s^2.
  Matrix direction(std::size_t k) const {
    const std::size_t N = y.size(), q = random.size();
    Matrix V(N, N);
    for (std::size_t r = 0; r < N; ++r)
      for (std::size_t s = 0; s < N; ++s) {
        if (k < q && agent[r] == agent[s]) V(r, s) = X(r, random[k]) * X(s, random[k]);
        if (k == q) V(r, s) = level[r] == level[s];
        if (k == q + 1) V(r, s) = r == s;
      }
    return V;
  }
  Matrix covariance(const LevelVariances& at) const {
    Matrix V(y.size(), y.size());
    const auto add = [&](double by, const Matrix& to) {
      for (std::size_t j = 0; j < V.all().size(); ++j) V.all()[j] += by * to.all()[j];
    };
    for (std::size_t k = 0; k < random.size(); ++k) add(at.D[k], direction(k));
    add(at.tau2, direction(random.size()));
    add(at.s2, direction(random.size() + 1));
    return V;
  }
};

// Everything by dense algebra in the rows.
struct Dense {
  Dense(const LevelWorld& w, const LevelVariances& at) {
    const std::size_t N = w.y.size(), d = w.d;
    const Matrix V = w.covariance(at);
    Vi = inverse(V);
    const Matrix ViX = multiply(Vi, w.X);
    Matrix H = multiply(transposed(w.X), ViX);
    for (std::size_t j = 0; j < d; ++j) H(j, j) += kPrecision;
    Hi = inverse(H);
    const Vector h = multiply(transposed(ViX), w.y);
    centre = multiply(Hi, h);
    P = Vi;
    add_product(-1, ViX, multiply(Hi, transposed(ViX)), P);
    double logs = 0;
    for (double e : symmetric_eigenvalues(V)) logs += std::log(e);
    for (double e : symmetric_eigenvalues(H)) logs += std::log(e / kPrecision);
    const double square = dot(w.y, multiply(Vi, w.y)) - dot(h, centre);
    log_evidence = -0.5 * (static_cast<double>(N) * std::log(2 * std::numbers::pi) + logs + square);
  }
  Matrix Vi, P, Hi;
  Vector centre;
  double log_evidence = 0;
};

class TwoFactors : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    world_.nested = GetParam();
    world_.make();
  }
  LevelEvidence evidence() {
    return {world_.moments, world_.cells, world_.random, kPrecision, *team_};
  }
  LevelWorld world_;
  std::unique_ptr<Team> team_ = serial_team();
};

const LevelVariances kAt{{0.5, 0.2, 0.7}, 0.4, 0.9};

TEST_P(TwoFactors, HaveTheEvidenceOfDenseAlgebra) {
  for (const LevelVariances& at :
       {kAt, LevelVariances{{0, 0.3, 0}, 0.8, 0.2}, LevelVariances{{0.5, 0.1, 2}, 0, 1.5}}) {
    LevelEvidence evidence = this->evidence();
    const Dense dense(world_, at);
    EXPECT_NEAR(evidence(at), dense.log_evidence, 1e-9);
    for (std::size_t j = 0; j < world_.d; ++j)
      EXPECT_NEAR(evidence.centre()[j], dense.centre[j], 1e-10);
    for (std::size_t j = 0; j < 9; ++j)
      EXPECT_NEAR(evidence.centre_cov().all()[j], dense.Hi.all()[j], 1e-10);
  }
}

TEST_P(TwoFactors, HaveTheGradientAndInformationOfDenseAlgebra) {
  for (const LevelVariances& at : {kAt, LevelVariances{{0.5, 0, 2}, 0, 1.5}}) {
    LevelEvidence evidence = this->evidence();
    evidence(at);
    const LevelEvidence::Slopes s =
        evidence.slopes(effects_of(Covariance::kDiagonal, world_.random));
    const Dense dense(world_, at);
    const Vector Py = multiply(dense.P, world_.y);
    for (std::size_t k = 0; k < 5; ++k) {
      const Matrix V = world_.direction(k);
      const Vector f = multiply(V, Py);
      EXPECT_NEAR(s.up[k], dot(Py, f), 1e-8) << k;
      EXPECT_NEAR(s.down[k], dot(dense.P.all(), V.all()), 1e-8) << k;
      for (std::size_t l = 0; l < 5; ++l) {
        const Vector Pf = multiply(dense.P, multiply(world_.direction(l), Py));
        EXPECT_NEAR(s.information(k, l), dot(f, Pf) / 2, 1e-8) << k << " " << l;
      }
    }
  }
}

// Without the determinant of H, and with V^-1 in the place of P where P is not next to rows.
TEST_P(TwoFactors, HaveTheLikelihoodOfDenseAlgebra) {
  for (const LevelVariances& at : {kAt, LevelVariances{{0.5, 0, 2}, 0, 1.5}}) {
    LevelEvidence evidence(world_.moments, world_.cells, world_.random, kPrecision, *team_, false);
    LevelEvidence restricted = this->evidence();
    const Dense dense(world_, at);
    const double log_H = -Cholesky(dense.Hi).log_determinant() - 3 * std::log(kPrecision);
    EXPECT_NEAR(evidence(at), dense.log_evidence + log_H / 2, 1e-9);
    restricted(at);
    const LevelEffects effects = effects_of(Covariance::kDiagonal, world_.random);
    const LevelEvidence::Slopes s = evidence.slopes(effects), reml = restricted.slopes(effects);
    for (std::size_t k = 0; k < 5; ++k) {
      EXPECT_NEAR(s.up[k], reml.up[k], 1e-8) << k;
      EXPECT_NEAR(s.down[k], dot(dense.Vi.all(), world_.direction(k).all()), 1e-8) << k;
      for (std::size_t l = 0; l < 5; ++l)
        EXPECT_NEAR(s.information(k, l), reml.information(k, l), 1e-8) << k << " " << l;
    }
  }
}

TEST_P(TwoFactors, ShareVariancesWithinGroups) {
  LevelEvidence evidence = this->evidence();
  evidence(kAt);
  const auto own = evidence.slopes(effects_of(Covariance::kDiagonal, world_.random));
  const auto one = evidence.slopes(effects_of(Covariance::kScalar, world_.random));
  EXPECT_NEAR(one.up[0], own.up[0] + own.up[1] + own.up[2], 1e-10);
  EXPECT_NEAR(one.down[0], own.down[0] + own.down[1] + own.down[2], 1e-10);
  double all = 0;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t l = 0; l < 3; ++l) all += own.information(k, l);
  EXPECT_NEAR(one.information(0, 0), all, 1e-9);
  EXPECT_NEAR(one.information(1, 2), own.information(3, 4), 1e-10);
}

// The posterior by conditioning the joint normal law of coefficients, effects and rows.
TEST_P(TwoFactors, HaveThePosteriorOfDenseAlgebra) {
  LevelEvidence evidence = this->evidence();
  evidence(kAt);
  const LevelPosteriors posteriors(effects_of(Covariance::kDiagonal, world_.random), evidence);
  const Dense dense(world_, kAt);
  const std::size_t N = world_.y.size(), d = world_.d, G = world_.levels;
  for (std::size_t i : {std::size_t{0}, std::size_t{7}}) {
    // Of (x_i, w): prior covariance, and covariance with the rows.
    Matrix prior(d + G, d + G), with(d + G, N);
    for (std::size_t j = 0; j < d; ++j) prior(j, j) = 1 / kPrecision + kAt.D[j];
    for (std::size_t g = 0; g < G; ++g) prior(d + g, d + g) = kAt.tau2;
    Matrix marginal = world_.covariance(kAt);
    for (std::size_t r = 0; r < N; ++r) {
      for (std::size_t j = 0; j < d; ++j)
        with(j, r) = world_.X(r, j) * (1 / kPrecision + (world_.agent[r] == i ? kAt.D[j] : 0));
      with(d + world_.level[r], r) = kAt.tau2;
      for (std::size_t s = 0; s < N; ++s)
        marginal(r, s) += dot(world_.X.row(r), world_.X.row(s)) / kPrecision;
    }
    const Matrix gain = multiply(with, inverse(marginal));
    const Vector mean = multiply(gain, world_.y);
    add_product(-1, gain, transpose(with), prior);
    const LevelPosteriors::Agent agent = posteriors.agent(i);
    for (std::size_t j = 0; j < d; ++j) {
      EXPECT_NEAR(agent.x[j], mean[j], 1e-8);
      for (std::size_t k = 0; k < d; ++k) EXPECT_NEAR(agent.known(j, k), prior(j, k), 1e-8);
    }
    for (std::size_t g = 0; g < G; ++g) {
      EXPECT_NEAR(posteriors.effect(g), mean[d + g], 1e-8);
      EXPECT_NEAR(posteriors.known(g), prior(d + g, d + g), 1e-8);
    }
    for (std::size_t c = world_.cells.first[i]; c < world_.cells.first[i + 1]; ++c)
      for (std::size_t j = 0; j < d; ++j)
        EXPECT_NEAR(agent.cross(c - world_.cells.first[i], j), prior(d + world_.cells.level[c], j),
                    1e-8);
  }
}

TEST_P(TwoFactors, EndWhereTheSlopeIsZero) {
  LevelEvidence evidence = this->evidence();
  const std::vector<LevelDecomposition> tried = decompose_levels({}, nullptr, evidence);
  ASSERT_EQ(tried.size(), 2u);
  for (const LevelDecomposition& t : tried) {
    EXPECT_TRUE(t.converged);
    const LevelEffects effects = effects_of(t.covariance, world_.random);
    EXPECT_NEAR(evidence(t.variances), t.log_evidence, 1e-10);
    const auto s = evidence.slopes(effects);
    for (std::size_t k = 0; k < s.up.size(); ++k) {
      const double variance = k < effects.groups    ? t.variances.D[k]
                              : k == effects.groups ? t.variances.tau2
                                                    : t.variances.s2;
      if (variance > 0) {
        EXPECT_NEAR(variance * (s.up[k] - s.down[k]), 0, 1e-5) << k;
      } else {
        EXPECT_LE(s.up[k], s.down[k]) << k;
      }
    }
  }
}

TEST_P(TwoFactors, HaveTheSameBitsOnAnyNumberOfThreads) {
  world_.agents = 100, world_.levels = 150;  // more than are inverted at a time
  world_.cells = {};
  world_.make();
  const auto run = [&](int threads) {
    const auto team = thread_team(threads);
    LevelEvidence evidence(world_.moments, world_.cells, world_.random, kPrecision, *team);
    const LevelDecomposition best = decompose_levels({}, nullptr, evidence)[0];
    const LevelPosteriors posteriors(effects_of(best.covariance, world_.random), evidence);
    Vector all = posteriors.agent(3).x;
    all.push_back(best.log_evidence);
    all.push_back(posteriors.variance(1));
    return all;
  };
  EXPECT_EQ(run(1), run(3));
}

// Levels with the same mean: tau^2 is 0, and everything else that of the model without levels.
TEST(SecondFactor, WithoutAnEffectIsTheModelWithOneFactor) {
  for (const bool nested : {true, false}) {
    LevelWorld world{.nested = nested, .agents = 30, .tau = 0, .centred = true};
    world.make();
    const auto team = serial_team();
    LevelEvidence evidence(world.moments, world.cells, world.random, kPrecision, *team);
    const LevelEffects effects = effects_of(Covariance::kDiagonal, world.random);
    const LevelDecomposition found =
        climb_levels(effects, {{0.1, 0.1, 0.1}, 0.1, 0.5}, {}, evidence);
    ASSERT_EQ(found.variances.tau2, 0) << nested;
    DecompositionOptions o;
    o.scalar = o.full = false;
    const Decomposition one = decompose(world.moments, o, *team).best;
    EXPECT_NEAR(found.log_evidence, one.log_evidence, 1e-9);
    EXPECT_NEAR(found.variances.s2, one.variances.s2, 1e-7);
    for (std::size_t j = 0; j < world.d; ++j) {
      EXPECT_NEAR(found.variances.D[j], one.variances.D[j * world.d + j], 1e-6);
      EXPECT_NEAR(evidence.centre()[j], one.centre[j], 1e-7);
    }
    for (double w : evidence.level_effects()) EXPECT_EQ(w, 0);
  }
}

TEST(SecondFactor, MayHaveACommonSlope) {
  LevelWorld world{.nested = false, .random = {0}};
  world.make();
  const auto team = serial_team();
  LevelEvidence evidence(world.moments, world.cells, world.random, kPrecision, *team);
  const LevelVariances at{{0.7}, 0.4, 0.9};
  EXPECT_NEAR(evidence(at), Dense(world, at).log_evidence, 1e-9);
}

// More levels than are inverted at a time.
TEST(SecondFactor, MayHaveManyLevels) {
  LevelWorld world{.nested = false, .agents = 30, .levels = 140};
  world.make();
  const auto team = serial_team();
  LevelEvidence evidence(world.moments, world.cells, world.random, kPrecision, *team);
  evidence(kAt);
  const auto s = evidence.slopes(effects_of(Covariance::kDiagonal, world.random));
  const Dense dense(world, kAt);
  for (std::size_t k = 0; k < 5; ++k)
    EXPECT_NEAR(s.down[k], dot(dense.P.all(), world.direction(k).all()), 1e-7) << k;
}

INSTANTIATE_TEST_SUITE_P(Levels, TwoFactors, testing::Bool(),
                         [](const auto& of) { return of.param ? "nested" : "crossed"; });

}  // namespace
}  // namespace affpcl
