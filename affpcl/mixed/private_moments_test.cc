#include "affpcl/mixed/private_moments.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "affpcl/mixed/algebra-inl.h"
#include "affpcl/mixed/learnt.h"
#include "affpcl/mixed/posterior.h"
#include "affpcl/random/seeded_bits_test.h"
#include "affpcl/random/streams.h"

namespace affpcl {
namespace {

using namespace mixed;

// Agents whose rows lie in [-1, 1], and their true coefficients.
struct BoundedWorld {
  std::size_t agents = 20, rows = 400, d = 3;
  double spread = 0.15, noise = 0.15;
  std::uint64_t seed = 1;
  std::vector<Vector> truth = {};
  Frame frame() {
    Frame f;
    f.d = d, f.rows = agents * rows;
    f.held_out.folds = 1;
    f.X.resize(d * f.rows), f.Y.resize(f.rows);
    f.y_mean = {0}, f.y_sd = {1};
    truth.clear();
    for (std::size_t i = 0; i < agents; ++i) {
      f.agents.push_back("a" + std::to_string(i));
      f.starts.push_back(i * rows);
      const auto draw = [&](std::size_t r, std::size_t j) {
        return normal({.seed = seed, .replicate = 0, .step = static_cast<std::uint32_t>(r)},
                      static_cast<std::int64_t>(i), Purpose::kSample,
                      static_cast<std::uint32_t>(j));
      };
      Vector x(d);
      for (std::size_t j = 0; j < d; ++j) x[j] = (j == 0 ? 0.1 : 0.3) + spread * draw(0, j);
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t row = i * rows + r;
        double y = noise * draw(r + 1, d);
        for (std::size_t j = 0; j < d; ++j) {
          const double z = j == 0 ? 1 : std::clamp(0.4 * draw(r + 1, j), -1.0, 1.0);
          f.X[j * f.rows + row] = z;
          y += z * x[j];
        }
        f.Y[row] = std::clamp(y, -1.0, 1.0);
      }
      truth.push_back(x);
    }
    f.starts.push_back(f.rows);
    f.all_rows = f.rows;
    return f;
  }
};

PrivacyTerms terms(double epsilon) {
  return PrivacyTerms::parse(fmt::format("epsilon={},delta=1e-5", epsilon), "y=-1:1,a=-1:1,b=-1:1");
}

Learnt learnt_from(const Moments& m, Team& team) {
  DecompositionOptions o;
  o.plain = true;
  o.centre_precision = bounded_precision(m.d);
  return learn_agents(m, o, team);
}

TEST(PrivateMoments, WithoutNoiseAreThoseOfTheRows) {
  BoundedWorld world;
  const Frame frame = world.frame();
  const auto team = serial_team();
  const Release exact = exact_moments(frame);
  const PrivateMoments moments(exact, 1e-7, 0, world.agents, *team);
  const Moments found = moments.equivalent(0, *team), rows = frame.moments(0, kAllRows, *team);
  for (std::size_t j = 0; j < rows.A.size(); ++j)
    EXPECT_NEAR(found.A[j], rows.A[j], 0.02);  // the grid's
  for (std::size_t j = 0; j < rows.b.size(); ++j) EXPECT_NEAR(found.b[j], rows.b[j], 0.02);
  const Learnt a = learnt_from(found, *team), b = learnt_from(rows, *team);
  EXPECT_NEAR(a.best().variances.s2, b.best().variances.s2, 1e-3 * b.best().variances.s2);
  for (std::size_t j = 0; j < frame.d; ++j)
    EXPECT_NEAR(a.best().centre[j], b.best().centre[j], 1e-4);
  EXPECT_NEAR(moments.together().rows[0], static_cast<double>(frame.rows), 0.01);
}

// The sums of all agents, not of some of each leaf of the sum.
TEST(PrivateMoments, TogetherAreTheSumOfAllAgents) {
  BoundedWorld world{.agents = 21, .rows = 50};
  const Frame frame = world.frame();
  const auto team = serial_team();
  Release release = exact_moments(frame);
  SeededBits bits(3);
  const PrivacyTerms t = terms(4);
  add_noise(t, bits, release);
  const PrivateMoments moments(release, t.noise(), 0, world.agents, *team);
  double rows = 0;
  for (std::size_t i = 0; i < world.agents; ++i) rows += release.moment(i, 0, 0);
  EXPECT_NEAR(moments.together().rows[0], rows, 1e-6 * rows);
}

TEST(PrivateMoments, ArePositiveSemidefinite) {
  BoundedWorld world{.agents = 30, .rows = 12};  // hardly more than noise
  const Frame frame = world.frame();
  const auto team = serial_team();
  Release release = exact_moments(frame);
  SeededBits bits(4);
  const PrivacyTerms t = terms(8);
  add_noise(t, bits, release);
  const PrivateMoments moments(release, t.noise(), 0, world.agents, *team);
  const Moments equivalent = moments.equivalent(0, *team);
  for (const Moments* m : {&moments.own(), &equivalent})
    for (std::size_t i = 0; i < world.agents; ++i) {
      EXPECT_GE(symmetric_eigenvalues(A_of(*m, i))[0], -1e-9);
      const Vector x = multiply(transposed(Matrix(A_of(*m, i))), Vector(3, 1.0));
      EXPECT_GE(m->yy[i] + 1e-9, 0);
      EXPECT_GE(m->yy[i] - 2 * std::accumulate(b_of(*m, i).begin(), b_of(*m, i).end(), 0.0) + x[0] +
                    x[1] + x[2],
                -1e-9);
    }
}

// 90 % intervals of agents' coefficients and of the centre hold the truth, noise and all.
TEST(PrivateMoments, StandardErrorsIncludeTheNoise) {
  for (const auto& [rows, epsilon] : {std::pair{300, 4.0}, {1000, 1.0}, {60, 8.0}}) {
    double inside = 0, count = 0, ratio = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      BoundedWorld world{.agents = 24, .rows = static_cast<std::size_t>(rows), .seed = seed};
      const Frame frame = world.frame();
      const auto team = serial_team();
      Release release = exact_moments(frame);
      SeededBits bits(seed);
      const PrivacyTerms t = terms(epsilon);
      add_noise(t, bits, release);
      const PrivateMoments moments(release, t.noise(), 0, world.agents, *team);
      const Moments m = moments.equivalent(0, *team);
      const Learnt learnt = learnt_from(m, *team);
      for (std::size_t i = 0; i < world.agents; ++i) {
        const Posterior p = averaged_posterior(m, learnt, i);
        for (std::size_t j = 0; j < 3; ++j, ++count)
          inside += std::abs(p.x[j] - world.truth[i][j]) <= 1.645 * std::sqrt(p.cov[j * 4]) ? 1 : 0;
      }
      ratio += learnt.best().variances.s2 / (world.noise * world.noise) / 12;
    }
    EXPECT_GT(inside / count, 0.85)
        << rows << " rows, epsilon " << epsilon;  // clustered: 2 points of noise
    EXPECT_LT(inside / count, 0.97) << rows << " rows, epsilon " << epsilon;
    EXPECT_NEAR(ratio, 1, 0.3) << rows << " rows, epsilon " << epsilon;
  }
}

}  // namespace
}  // namespace affpcl
