#include "affpcl/problem/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/rows_test.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Vector mean_of(const Gaussian& g, std::int64_t agent) {
  const In m = g.mean(lanes_of(agent / kLanes, g.shape().agents));
  Vector v;
  for (int r = 0; r < m.rows; ++r) v.push_back(m.at(r, static_cast<int>(agent % kLanes)));
  return v;
}

// A(s) as apply() has it, for lane 0 of the first block.
Matrix A_at(const Gaussian& g, const Vector& s) {
  const int d = g.shape().d;
  Matrix A(s.size(), s.size());
  const BlockRows state(d), y(d);
  state.set(0, s);
  for (std::size_t c = 0; c < s.size(); ++c) {
    apply(g, {0, 1}, state.in(), shared(unit(s.size(), c)), y.out());
    set_column(A, c, y.lane(0));
  }
  return A;
}

// The mean over s ~ N(m, I) of a polynomial in s of degree two (or three): m +- sqrt(d) e_r, each
// with the same weight, have the same first three moments.
std::vector<Vector> sigma_points(const Vector& m) {
  std::vector<Vector> points;
  const std::size_t d = m.size();
  for (std::size_t r = 0; r < d; ++r)
    for (double sign : {1.0, -1.0})
      points.push_back(m + sign * std::sqrt(static_cast<double>(d)) * unit(d, r));
  return points;
}

const std::vector<Gaussian::Config>& configs() {
  static const std::vector<Gaussian::Config> kConfigs = {
      {.agents = 1, .dim = 1},
      {.agents = 2, .dim = 2, .delta_env = 0.8},
      {.agents = 20, .dim = 5},
      {.agents = 70, .dim = 3, .delta_env = 0.5, .delta_obj = 2, .eps_A = 0.3, .eps_b = 1.5},
      {.agents = 5, .dim = 20, .delta_env = 0, .delta_obj = 0},
      {.agents = 9, .dim = 4, .theta_length = 0, .ridge = 0.25, .environments = 3},
      {.agents = 6, .dim = 4, .delta_env = 1, .spread = 2, .first_central = false},
  };
  return kConfigs;
}

// ---- the system itself ----

TEST(Gaussian, IsThePapersConstruction) {
  for (const Gaussian::Config& c : configs()) {
    const Gaussian g(c, 3, 1);
    const int d = c.dim;
    EXPECT_EQ(g.shape().agents, c.agents);
    EXPECT_EQ(g.shape().d, d);
    EXPECT_EQ(g.shape().k, d);
    // A(0) = A_base = R'R + ridge I with R uniform, from the stream.
    Matrix R(at(d), at(d));
    for (int r = 0; r < d; ++r)
      for (int k = 0; k < d; ++k)
        R(at(r), at(k)) = uniform({3, 1, 0}, r, Purpose::kSystemA, static_cast<std::uint32_t>(k));
    const double ridge = c.ridge < 0 ? d : c.ridge;
    const Matrix I = Matrix::identity(at(d)), A_base = transpose(R) * R + ridge * I;
    EXPECT_LE(norm((A_at(g, Vector(at(d))) - A_base).all()), 1e-12 * norm(A_base.all()));
    // A(s) = (I + eps ss') A_base.
    Vector s;
    for (int r = 0; r < d; ++r) s.push_back(std::sin(r + 1.0));
    const Matrix want = (I + c.eps_A * outer(s, s)) * A_base;
    EXPECT_LE(norm((A_at(g, s) - want).all()), 1e-12 * norm(want.all()));

    const Vector base = g.theta(0);
    if (c.first_central) {
      EXPECT_EQ(norm(mean_of(g, 0)), 0);
      if (c.theta_length > 0) {
        EXPECT_NEAR(norm(base), c.theta_length, 1e-13);
      }
    }
    for (std::int64_t i = c.first_central ? 1 : 0; i < c.agents; ++i) {
      const std::int64_t e = c.environments == 0 ? i : i % c.environments;
      if (e != 0 || !c.first_central) {
        EXPECT_NEAR(norm(mean_of(g, i)), c.delta_env * c.spread, 1e-12);
      }
      if (c.first_central) {
        EXPECT_NEAR(norm(g.theta(i) - base), c.delta_obj, 1e-12);
      }
    }
  }
}

TEST(Gaussian, SettingsOfASweepDifferByTheKnobAlone) {
  const Gaussian::Config a{.agents = 7, .dim = 4, .delta_env = 0.2, .delta_obj = 0.1},
      b{.agents = 7, .dim = 4, .delta_env = 0.4, .delta_obj = 0.3};
  const Gaussian x(a, 5, 2), y(b, 5, 2), more({.agents = 200, .dim = 4}, 5, 2);
  const Vector zero(4);
  EXPECT_EQ(A_at(x, zero), A_at(y, zero));
  EXPECT_EQ(A_at(x, zero), A_at(more, zero));
  for (std::int64_t i = 0; i < 7; ++i) {
    expect_near(2 * mean_of(x, i), mean_of(y, i), 1e-14);
    const Vector base = x.theta(0);
    expect_near(3 * (x.theta(i) - base), y.theta(i) - base, 1e-13);
    expect_near(mean_of(more, i) / 0.3, mean_of(x, i) / 0.2, 1e-13);
  }
}

TEST(Gaussian, ReplicatesAndSeedsAreOtherSystems) {
  const Vector zero(5);
  const Gaussian a({}, 1, 0), again({}, 1, 0), b({}, 1, 1), c({}, 2, 0);
  EXPECT_EQ(A_at(a, zero), A_at(again, zero));
  EXPECT_NE(A_at(a, zero), A_at(b, zero));
  EXPECT_NE(A_at(a, zero), A_at(c, zero));
  EXPECT_NE(a.theta(3), b.theta(3));
}

TEST(Gaussian, DrawsAreTheMeanPlusTheStream) {
  const Gaussian g({.agents = 70, .dim = 3}, 4, 0);
  const Key key{9, 2, 5};
  for (std::int64_t b = 0; b < 2; ++b) {
    const Agents world{lanes_of(b, 70), nullptr};
    const BlockRows s(3);
    g.draw({key, {}}, world, s.out());
    for (int l = 0; l < world.lanes.count; ++l) {
      const std::int64_t i = world.lanes.first + l;
      for (int r = 0; r < 3; ++r)
        EXPECT_EQ(s.in().at(r, l), normal(key, i, Purpose::kSample, static_cast<std::uint32_t>(r)) +
                                       mean_of(g, i)[at(r)]);
    }
  }
}

// ---- means and truth, by exact quadrature of apply(), objective() and Phi() ----

TEST(Gaussian, MeansAreTheAveragesOfTheSamples) {
  for (const Gaussian::Config& c : configs()) {
    const Gaussian g(c, 11, 0);
    const int d = c.dim;
    Vector x;
    for (int r = 0; r < d; ++r) x.push_back(std::cos(1.7 * r) - 0.3);
    for (std::int64_t b = 0; b < blocks_of(c.agents); ++b) {
      const Lanes lanes = lanes_of(b, c.agents);
      const BlockRows own(d);  // the same x in every lane, once as a shared column, once not
      copy(shared(x), own.out());
      const BlockRows Ax(d), bbar(d), bhat(d), Ax_own(d);
      g.mean_apply(lanes, shared(x), Ax.out());
      g.mean_apply(lanes, own.in(), Ax_own.out());
      g.mean_objective(lanes, bbar.out());
      g.mean_Phi(lanes, shared(x), bhat.out());
      const BlockRows s(d), y(d), sumA(d), sumb(d), sumPhi(d);
      for (int point = 0; point < 2 * d; ++point) {
        for (int l = 0; l < lanes.count; ++l)
          s.set(l, sigma_points(mean_of(g, lanes.first + l))[static_cast<std::size_t>(point)]);
        const double w = 1.0 / (2 * d);
        apply(g, lanes, s.in(), own.in(), y.out());
        add_scaled(sumA.out(), w, y.in());
        g.objective(lanes, s.in(), y.out());
        add_scaled(sumb.out(), w, y.in());
        apply_Phi(g, lanes, s.in(), shared(x), y.out());
        add_scaled(sumPhi.out(), w, y.in());
      }
      for (int l = 0; l < lanes.count; ++l) {
        expect_near(Ax.lane(l), sumA.lane(l), 1e-12);
        expect_near(Ax_own.lane(l), sumA.lane(l), 1e-12);
        expect_near(bbar.lane(l), sumb.lane(l), 1e-12);
        expect_near(bhat.lane(l), sumPhi.lane(l), 1e-12);
      }
    }
  }
}

TEST(Gaussian, TruthIsADirectSolve) {
  for (const Gaussian::Config& c : configs()) {
    const Gaussian g(c, 12, 0);
    const int d = c.dim;
    const Matrix I = Matrix::identity(at(d)), A_base = A_at(g, Vector(at(d)));
    // Phi_base from Phi() at s = 0.
    Matrix Phi_base(at(d), at(d));
    const BlockRows zero(d), y(d);
    for (std::size_t k = 0; k < at(d); ++k) {
      apply_Phi(g, {0, 1}, zero.in(), shared(unit(at(d), k)), y.out());
      set_column(Phi_base, k, y.lane(0));
    }
    ASSERT_NE(g.truth(), nullptr);
    const Truth& truth = *g.truth();
    Matrix A0(at(d), at(d)), Phi0 = A0;
    Vector b0(at(d));
    for (std::int64_t i = 0; i < c.agents; ++i) {
      const Vector m = mean_of(g, i);
      const Matrix second = I + outer(m, m);  // E ss'
      const Matrix A = (I + c.eps_A * second) * A_base, Phi = (I + c.eps_b * second) * Phi_base;
      const Vector b = Phi * g.theta(i);
      A0 += A, Phi0 += Phi, b0 += b;
      const Out x = truth.x.block(i / kLanes)[Field{0, d}];
      Vector got;
      for (int r = 0; r < d; ++r) got.push_back(x.row(r)[i % kLanes]);
      expect_near(got, inverse(A) * b, 1e-9);
    }
    expect_near(truth.xc, inverse(A0) * b0, 1e-9);
    expect_near(truth.thetac, inverse(Phi0) * b0, 1e-9);
  }
}

TEST(Gaussian, ErrorIsTheSquaredDistanceToTheTruth) {
  const Gaussian g({.agents = 3, .dim = 2}, 1, 0);
  const BlockRows x(2), e(1);
  copy(g.truth()->x.block(0)[Field{0, 2}], x.out());
  x.out().row(0)[1] += 3;
  x.out().row(1)[1] += 4;
  error(g, {0, 3}, x.in(), e.out());
  EXPECT_EQ(e.in().at(0, 0), 0);
  EXPECT_NEAR(e.in().at(0, 1), 25, 1e-12);
  EXPECT_EQ(e.in().at(0, 2), 0);
}

TEST(Gaussian, KnownIsTheMeanOfAllObjectives) {
  const Gaussian g({.agents = 70, .dim = 3, .delta_obj = 1}, 2, 0);
  const BlockRows s(3), b0(3), b(3);
  for (int l = 0; l < kLanes; ++l) s.set(l, Vector(3, 0.1 * l));
  known_objective(g, {0, kLanes}, s.in(), b0.out());
  const BlockRows sum(3);
  for (std::int64_t j = 0; j < 70; ++j) {
    apply_Phi(g, {0, kLanes}, s.in(), shared(g.theta(j)), b.out());
    add_scaled(sum.out(), 1.0 / 70, b.in());
  }
  for (int l = 0; l < kLanes; ++l) expect_near(b0.lane(l), sum.lane(l), 1e-12);
}

TEST(Gaussian, CoeIsTheResidual) {
  const Gaussian g({.agents = 4, .dim = 3}, 2, 0);
  const BlockRows s(3), b(3), bhat(3), got(3);
  g.draw({{1, 0, 0}, {}}, {{0, 4}, nullptr}, s.out());
  const Vector theta(3, 0.5);
  g.objective({0, 4}, s.in(), b.out());
  apply_Phi(g, {0, 4}, s.in(), shared(theta), bhat.out());
  g.coe({0, 4}, s.in(), b.in(), shared(theta), bhat.in(), got.out());
  for (int l = 0; l < 4; ++l) expect_near(got.lane(l), bhat.lane(l) - b.lane(l), 1e-15);
}

TEST(Gaussian, MonotonicityIsTheSmallestEigenvalueOfTheSymmetricPart) {
  const Gaussian::Config c{.agents = 4, .dim = 3, .delta_env = 0.5};
  const Gaussian g(c, 2, 0);
  const Monotonicity m = monotonicity(g);
  ASSERT_EQ(m.agents.size(), 4u);
  const Matrix I = Matrix::identity(3), A_base = A_at(g, Vector(3));
  Matrix A0(3, 3);
  for (int i = 0; i < 4; ++i) {
    const Vector mi = mean_of(g, i);
    const Matrix A = (I + c.eps_A * (I + outer(mi, mi))) * A_base;
    A0 += A / 4;
    EXPECT_NEAR(m.agents[at(i)], smallest_symmetric(A), 1e-10);
  }
  EXPECT_NEAR(m.central, smallest_symmetric(A0), 1e-10);
  EXPECT_GT(m.objective, 0);
}

// E|A(s) x|^2 is a polynomial of degree four in s, so three Gauss-Hermite points per coordinate
// integrate it exactly.
double mean_square(const Gaussian& g, const Vector& m, const Vector& x) {
  const int d = static_cast<int>(m.size());
  const double node[] = {0, std::sqrt(3.0), -std::sqrt(3.0)},
               weight[] = {2.0 / 3, 1.0 / 6, 1.0 / 6};
  double sum = 0;
  const int points = static_cast<int>(std::lround(std::pow(3, d)));
  for (int p = 0; p < points; ++p) {
    Vector s = m;
    double w = 1;
    for (int r = 0, rest = p; r < d; ++r, rest /= 3)
      s[at(r)] += node[rest % 3], w *= weight[rest % 3];
    sum += w * squared_norm(A_at(g, s) * x);
  }
  return sum;
}

TEST(Gaussian, GABoundsTheMeanSquare) {
  for (int d : {1, 2, 3}) {
    const Gaussian g({.agents = 6, .dim = d, .delta_env = 0.7, .eps_A = 0.8}, 21, 0);
    for (std::int64_t i = 0; i < 6; ++i)
      for (int trial = 0; trial < 10; ++trial) {
        Vector x;
        for (int r = 0; r < d; ++r)
          x.push_back(normal({1, 0, static_cast<std::uint32_t>(trial)}, i, Purpose::kMethod,
                             static_cast<std::uint32_t>(r)));
        EXPECT_LE(mean_square(g, mean_of(g, i), x),
                  g.G_A() * g.G_A() * squared_norm(x) * (1 + 1e-12));
      }
  }
}

TEST(Gaussian, GAIsAttained) {
  // In one dimension at the farthest agent; with all means zero along A_base's longest direction.
  const Gaussian line({.agents = 3, .dim = 1, .delta_env = 0.7, .eps_A = 0.8}, 21, 0);
  EXPECT_NEAR(mean_square(line, mean_of(line, 1), {1}), line.G_A() * line.G_A(),
              1e-11 * line.G_A() * line.G_A());
  const Gaussian same({.agents = 3, .dim = 3, .delta_env = 0, .eps_A = 0.8}, 21, 0);
  const Matrix A = A_at(same, Vector(3));
  const Vector longest = row(symmetric_eigen(transpose(A) * A).vectors, 2);
  EXPECT_NEAR(mean_square(same, Vector(3), longest), same.G_A() * same.G_A(),
              1e-11 * same.G_A() * same.G_A());
}

// ---- densities ----

// rho^i(s_j) straight from the log densities of the n agents.
Matrix brute_force_ratios(const Gaussian& g, const std::vector<Vector>& s) {
  const std::size_t n = at(g.shape().agents);
  Matrix rho(n, s.size());
  for (std::size_t j = 0; j < s.size(); ++j) {
    Vector log_density;
    for (std::int64_t i = 0; i < g.shape().agents; ++i)
      log_density.push_back(-0.5 * squared_norm(s[j] - mean_of(g, i)));
    const double most = *std::max_element(log_density.begin(), log_density.end());
    double mixture = 0;
    for (double d : log_density) mixture += std::exp(d - most) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) rho(i, j) = std::exp(log_density[i] - most) / mixture;
  }
  return rho;
}

struct Samples {
  explicit Samples(const Gaussian& g, std::uint32_t step) {
    const Shape shape = g.shape();
    for (std::int64_t b = 0; b < blocks_of(shape.agents); ++b) {
      const Lanes lanes = lanes_of(b, shape.agents);
      blocks.emplace_back(shape.d);
      g.draw({{77, 0, step}, {}}, {lanes, nullptr}, blocks.back().out());
      for (int l = 0; l < lanes.count; ++l) each.push_back(blocks.back().lane(l));
    }
  }
  std::vector<BlockRows> blocks;
  std::vector<Vector> each;
};

// rho^i(s_j) as accumulate() and correct() have it: one sample with a direction of one at a time.
Matrix ratios(const Gaussian& g, const Samples& samples) {
  const std::int64_t n = g.shape().agents;
  const Densities& densities = *g.densities();
  Matrix rho(at(n), at(n));
  Scratch scratch;
  for (std::int64_t j = 0; j < n; ++j) {
    const BlockRows direction(1), corrected(1);
    direction.out().row(0)[j % kLanes] = 1;
    std::vector<double> M(static_cast<std::size_t>(densities.p()));
    scratch.clear();
    densities.accumulate(lanes_of(j / kLanes, n),
                         samples.blocks[static_cast<std::size_t>(j / kLanes)].in(), direction.in(),
                         scratch, M.data());
    for (std::int64_t b = 0; b < blocks_of(n); ++b) {
      const Lanes lanes = lanes_of(b, n);
      densities.correct(lanes, M.data(), corrected.out());
      for (int l = 0; l < lanes.count; ++l)
        rho(at(lanes.first + l), at(j)) = corrected.in().at(0, l);
    }
  }
  return rho;
}

struct Case {
  std::int64_t n;
  int d;
  double delta;
  std::int64_t environments = 0;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {1, 1, 0.3},  {1, 5, 3},       {2, 1, 0.05},  {2, 2, 3},         {2, 20, 3},
      {70, 1, 1},   {70, 5, 0},      {70, 5, 3},    {70, 20, 0.8},     {300, 3, 0.3},
      {300, 20, 3}, {10, 4, 0.5, 3}, {70, 2, 3, 5}, {130, 5, 0.4, 64}, {3, 2, 0.5, 100},
  };
  return kCases;
}

TEST(GaussianDensities, EachRatioIsTheQuotientOfTheDensities) {
  for (const Case& c : cases()) {
    if (c.n > 130) continue;  // the sums below have the large ones
    const Gaussian g(
        {.agents = c.n, .dim = c.d, .delta_env = c.delta, .environments = c.environments}, 31, 0);
    const Samples samples(g, 0);
    const Matrix got = ratios(g, samples), want = brute_force_ratios(g, samples.each);
    // The logits are sums of d products of size (delta spread)^2: their rounding is the tolerance.
    for (std::size_t i = 0; i < got.rows(); ++i)
      for (std::size_t j = 0; j < got.cols(); ++j)
        ASSERT_NEAR(got(i, j), want(i, j), 1e-11 * want(i, j) + 1e-290)
            << c.n << ' ' << c.d << ' ' << c.delta;
  }
}

TEST(GaussianDensities, RatiosAreBoundedAndAverageToOne) {
  for (const Case& c : cases()) {
    if (c.n > 130) continue;
    const Gaussian g(
        {.agents = c.n, .dim = c.d, .delta_env = c.delta, .environments = c.environments}, 32, 0);
    const Matrix rho = ratios(g, Samples(g, 1));
    for (double total : column_sums(rho)) EXPECT_NEAR(total / static_cast<double>(c.n), 1, 1e-12);
    const auto [least, most] = std::minmax_element(rho.all().begin(), rho.all().end());
    EXPECT_GE(*least, 0);
    EXPECT_LE(*most, static_cast<double>(c.n) * (1 + 1e-14));
    if (c.n == 1 || c.delta == 0) {
      EXPECT_EQ(*least, 1);
      EXPECT_EQ(*most, 1);
    }
  }
}

TEST(GaussianDensities, SumsOverAllSamplesEqualTheBruteForce) {
  for (const Case& c : cases()) {
    const Gaussian g(
        {.agents = c.n, .dim = c.d, .delta_env = c.delta, .environments = c.environments}, 33, 0);
    const Samples samples(g, 2);
    const Densities& densities = *g.densities();
    const int rows = 3;  // directions of any width
    std::vector<double> M(static_cast<std::size_t>(densities.p() * rows));
    Scratch scratch;
    Matrix G(at(c.n), rows);
    for (std::int64_t b = 0; b < blocks_of(c.n); ++b) {
      const Lanes lanes = lanes_of(b, c.n);
      const BlockRows direction(rows);
      fill(direction.out(), std::nan(""));  // padding must not leak
      for (int l = 0; l < lanes.count; ++l)
        for (int r = 0; r < rows; ++r)
          G(at(lanes.first + l), at(r)) = direction.out().row(r)[l] =
              normal({5, 0, 0}, lanes.first + l, Purpose::kMethod, static_cast<std::uint32_t>(r));
      scratch.clear();
      densities.accumulate(lanes, samples.blocks[static_cast<std::size_t>(b)].in(), direction.in(),
                           scratch, M.data());
    }
    const Matrix rho = brute_force_ratios(g, samples.each);
    const Matrix want = rho * G;
    for (double& entry : G.all()) entry = std::abs(entry);
    const Matrix size = rho * G;
    for (std::int64_t b = 0; b < blocks_of(c.n); ++b) {
      const Lanes lanes = lanes_of(b, c.n);
      const BlockRows got(rows);
      densities.correct(lanes, M.data(), got.out());
      for (int l = 0; l < lanes.count; ++l)
        for (int r = 0; r < rows; ++r)
          ASSERT_NEAR(got.in().at(r, l), want(at(lanes.first + l), at(r)),
                      1e-11 * size(at(lanes.first + l), at(r)))
              << c.n << " agents, d " << c.d << ", delta " << c.delta;
    }
  }
}

TEST(GaussianDensities, ASharedDirectionIsEveryAgents) {
  const Gaussian g({.agents = 5, .dim = 2}, 34, 0);
  const Samples samples(g, 0);
  const double column[] = {2, -3};
  const BlockRows own(2);
  copy(In{column, 2, 1}, own.out());
  Scratch scratch;
  std::vector<double> a(10), b(10);
  g.densities()->accumulate({0, 5}, samples.blocks[0].in(), own.in(), scratch, a.data());
  g.densities()->accumulate({0, 5}, samples.blocks[0].in(), In{column, 2, 1}, scratch, b.data());
  EXPECT_EQ(a, b);
}

TEST(GaussianDensities, OwnIsTheRatioAtTheAgentsOwnSample) {
  for (const Case& c : cases()) {
    if (c.n > 130) continue;
    const Gaussian g(
        {.agents = c.n, .dim = c.d, .delta_env = c.delta, .environments = c.environments}, 35, 0);
    const Samples samples(g, 3);
    const Matrix rho = brute_force_ratios(g, samples.each);
    Scratch scratch;
    for (std::int64_t b = 0; b < blocks_of(c.n); ++b) {
      const Lanes lanes = lanes_of(b, c.n);
      const BlockRows got(1);
      scratch.clear();
      g.densities()->own(lanes, samples.blocks[static_cast<std::size_t>(b)].in(), scratch,
                         got.out());
      for (int l = 0; l < lanes.count; ++l) {
        const std::size_t i = at(lanes.first + l);
        EXPECT_NEAR(got.in().at(0, l), rho(i, i), 1e-11 * rho(i, i));
      }
    }
  }
}

// Total variation of N(m, I) and N(m', I) is P(|Z| < |m - m'| / 2).
TEST(GaussianDensities, TotalVariationHasAClosedForm) {
  const Gaussian g({.agents = 5, .dim = 3, .delta_env = 0.4}, 36, 0);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 5; ++j)
      EXPECT_NEAR(g.densities()->tv(i, j),
                  std::erf(norm(mean_of(g, i) - mean_of(g, j)) / (2 * std::sqrt(2.0))), 1e-14);
  const Gaussian line({.agents = 2, .dim = 1, .delta_env = 0.5}, 36, 0);  // means 0 and +-2
  EXPECT_NEAR(line.densities()->tv(0, 1), 0.6826894921370859, 1e-14);
}

TEST(GaussianDensities, HoldAsManyFeaturesAsThereAreEnvironments) {
  const auto p = [](const Gaussian::Config& c) { return Gaussian(c, 1, 0).densities()->p(); };
  EXPECT_EQ(p({.agents = 20}), 20);
  EXPECT_EQ(p({.agents = 20, .environments = 3}), 3);
  EXPECT_EQ(p({.agents = 20, .environments = 100}), 20);
  EXPECT_EQ(p({.agents = 20, .delta_env = 0}), 1);
  EXPECT_EQ(p({.agents = 20, .spread = 0}), 1);
  const Gaussian g({.agents = 10, .dim = 3, .environments = 4}, 1, 0);
  for (std::int64_t i = 4; i < 10; ++i) EXPECT_EQ(mean_of(g, i), mean_of(g, i - 4));
  EXPECT_NE(mean_of(g, 1), mean_of(g, 2));
}

}  // namespace
}  // namespace affpcl
