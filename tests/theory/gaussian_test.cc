// The gaussian system's density ratios and samples, checked without drawing any.
#include "affpcl/problem/gaussian.h"

#include "affpcl/problem/apply_test.h"

#include <gtest/gtest.h>

#include "tests/theory/harness.h"

namespace affpcl::testing {
namespace {

constexpr double kExact = 1e-12;

// E_mu0[rho^i f] = E_mu^i f, as integrals. The trapezoidal rule is exact to rounding for a gaussian
// times a polynomial. Through accumulate and correct, the way a round goes: agent j brings the
// nodes with their weight under mu^j.
TEST(TheoryGaussian, RatioCarriesTheMixtureToTheAgent) {
  for (std::int64_t environments : {0, 2})
    for (double delta : {0.0, 0.1, 0.3, 0.8}) {
      Gaussian::Config config;
      config.agents = 5, config.dim = 1, config.environments = environments;
      config.delta_env = delta;
      const Gaussian problem(config, 5, 0);
      const int n = 5, powers = 4;
      const Lanes lanes = lanes_of(0, n);
      const In m = problem.mean(lanes);
      const Densities& densities = *problem.densities();
      std::vector<double> M(at(densities.p() * powers), 0.0), own(at(n), 0.0);
      Scratch scratch;
      const double h = 1.0 / 32, reach = 16;
      for (double node = -reach; node <= reach; node += h) {
        scratch.clear();
        const Out s = scratch.rows(1), g = scratch.rows(powers), rho = scratch.rows(1);
        fill(s, node);
        for (int r = 0; r < powers; ++r)
          for (int j = 0; j < kLanes; ++j) {
            const double z = j < n ? node - m.at(0, j) : 0;
            g.row(r)[j] =
                h * std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi) * std::pow(node, r);
          }
        densities.accumulate(lanes, s, g, scratch, M.data());
        densities.own(lanes, s, scratch, rho);
        double mixture = 0;
        for (int j = 0; j < n; ++j) mixture += g.row(0)[j] / n;
        for (int i = 0; i < n; ++i) own[at(i)] += mixture * rho.p[i];
      }
      for (double& x : M) x /= n;
      const Out rg = scratch.rows(powers);
      densities.correct(lanes, M.data(), rg);
      for (int i = 0; i < n; ++i) {
        const double mi = m.at(0, i);
        EXPECT_NEAR(own[at(i)], 1, kExact);
        EXPECT_NEAR(rg.row(0)[i], 1, kExact);
        EXPECT_NEAR(rg.row(1)[i], mi, 10 * kExact);
        EXPECT_NEAR(rg.row(2)[i], mi * mi + 1, 100 * kExact);
        EXPECT_NEAR(rg.row(3)[i], mi * (mi * mi + 3), 1000 * kExact);
      }
    }
}

// The closed-form means against the same rule: E A, E b.
TEST(TheoryGaussian, MeansInClosedForm) {
  Gaussian::Config config;
  config.agents = 3, config.dim = 1, config.delta_env = config.delta_obj = 0.4;
  const Gaussian problem(config, 6, 0);
  const Lanes lanes = lanes_of(0, 3);
  Scratch scratch;
  const Out A = scratch.rows(1), b = scratch.rows(1), Phi = scratch.rows(1);
  fill(A, 0), fill(b, 0), fill(Phi, 0);
  const double one = 1, h = 1.0 / 32;
  const In unit{&one, 1, 1};
  const Out s = scratch.rows(1), y = scratch.rows(1);
  for (double node = -14; node <= 14; node += h) {
    for (int i = 0; i < 3; ++i) s.p[i] = node + problem.mean(lanes).at(0, i);
    const double w = h * std::exp(-0.5 * node * node) / std::sqrt(2 * std::numbers::pi);
    apply(problem, lanes, s, unit, y), add_scaled(A, w, y);
    problem.objective(lanes, s, y), add_scaled(b, w, y);
    apply_Phi(problem, lanes, s, unit, y), add_scaled(Phi, w, y);
  }
  for (int i = 0; i < 3; ++i) {
    problem.mean_apply(lanes, unit, y);
    EXPECT_NEAR(y.p[i], A.p[i], 1e-11);
    problem.mean_objective(lanes, y);
    EXPECT_NEAR(y.p[i], b.p[i], 1e-11);
    problem.mean_Phi(lanes, unit, y);
    EXPECT_NEAR(y.p[i], Phi.p[i], 1e-11);
  }
}

// Box-Muller from the uniforms of the same number: z0^2 + z1^2 = -2 ln u, z1 / z0 = tan(2 pi v).
TEST(IdentityStreams, NormalsAreBoxMullerOfTheirUniforms) {
  const Key key{11, 3, 5};
  for (std::int64_t agent : {0, 1, 63, 64, 1000})
    for (std::uint32_t pair = 0; pair < 40; ++pair) {
      const double u = uniform(key, agent, Purpose::kSample, 2 * pair),
                   v = uniform(key, agent, Purpose::kSample, 2 * pair + 1),
                   z0 = normal(key, agent, Purpose::kSample, 2 * pair),
                   z1 = normal(key, agent, Purpose::kSample, 2 * pair + 1);
      const double r = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      EXPECT_NEAR(z0, r * std::cos(angle), 1e-13);
      EXPECT_NEAR(z1, r * std::sin(angle), 1e-13);
    }
}

// A sample is the agent's mean plus those normals.
TEST(IdentityStreams, SamplesAreTheMeanPlusNormals) {
  Gaussian::Config config;
  config.agents = 70, config.dim = 3;
  const Gaussian problem(config, 2, 0);
  Scratch scratch;
  const Key key{9, 4, 17};
  for (std::int64_t block : {0, 1}) {
    const Lanes lanes = lanes_of(block, 70);
    const Out s = scratch.rows(3);
    problem.draw({key, {}}, {lanes, nullptr}, s);
    for (int l = 0; l < lanes.count; ++l)
      for (int r = 0; r < 3; ++r)
        EXPECT_NEAR(s.row(r)[l],
                    problem.mean(lanes).at(r, l) + normal(key, lanes.first + l, Purpose::kSample,
                                                          static_cast<std::uint32_t>(r)),
                    1e-14);
  }
}

}  // namespace
}  // namespace affpcl::testing
