#include "affpcl/problem/tabular.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "affpcl/base/error.h"
#include "affpcl/problem/apply_test.h"
#include "affpcl/problem/rows_test.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The parts of a system.
Matrix A(const FiniteSystem& f, int s) {
  return MatrixView(f.A.data() + s * f.d * f.d, at(f.d), at(f.d));
}
Matrix Phi(const FiniteSystem& f, int s) {
  return MatrixView(f.Phi.data() + s * f.d * f.k, at(f.d), at(f.k));
}
Vector theta(const FiniteSystem& f, std::int64_t i) { return part(f.theta, at(i * f.k), at(f.k)); }
double mu(const FiniteSystem& f, std::int64_t i, int s) { return f.mu[at(i * f.states + s)]; }
Vector b(const FiniteSystem& f, std::int64_t i, int s) {
  if (f.b.empty()) return Phi(f, s) * theta(f, i);
  return part(f.b, at((i * f.states + s) * f.d), at(f.d));
}
double total_variation(const FiniteSystem& f, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (int s = 0; s < f.states; ++s) sum += std::abs(mu(f, i, s) - mu(f, j, s)) / 2;
  return sum;
}

// A system of given sizes with nothing special about it; `with_b`: b^i(s) instead of theta^i.
FiniteSystem arbitrary(std::int64_t n, int states, int d, int k, bool with_b, std::uint64_t seed) {
  FiniteSystem f;
  f.agents = n, f.states = states, f.d = d, f.k = k, f.p = 2;
  std::uint32_t next = 0;
  const auto draw = [&] { return normal({seed, 0, 0}, 0, Purpose::kMethod, next++); };
  for (int s = 0; s < states; ++s)
    for (int r = 0; r < d; ++r)
      for (int c = 0; c < d; ++c) f.A.push_back((r == c ? 3 : 0) + 0.5 * draw());
  for (int i = 0; i < states * d * k; ++i) f.Phi.push_back(draw());
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<double> law(at(states));
    for (double& x : law) x = std::abs(draw());
    if (states > 2) law[at(i % states)] = 0;  // not every agent sees every state
    const double sum = std::accumulate(law.begin(), law.end(), 0.0);
    for (double x : law) f.mu.push_back(x / sum);
  }
  if (with_b) {
    for (std::int64_t i = 0; i < n * states * d; ++i) f.b.push_back(draw());
  } else {
    for (std::int64_t i = 0; i < n * k; ++i) f.theta.push_back(draw());
  }
  for (int i = 0; i < states * f.p; ++i) f.psi.push_back(draw());
  return f;
}

const std::vector<FiniteSystem>& systems() {
  static const std::vector<FiniteSystem> kSystems = {
      Tabular::generate({}, 1, 0),
      Tabular::generate({.agents = 70, .dim = 2, .states = 5}, 2, 3),
      Tabular::generate({.family = Tabular::Family::kFreeRide, .agents = 4, .states = 3}, 2, 0),
      arbitrary(3, 4, 2, 2, false, 1),  // square Phi
      arbitrary(5, 6, 3, 2, false, 2),  // k < d
      arbitrary(5, 6, 2, 4, true, 3),   // k > d, and b outside the range of Phi
      arbitrary(66, 4, 2, 0, true, 4),  // no Phi
      arbitrary(1, 1, 1, 1, false, 5),
  };
  return kSystems;
}

// ---- generate ----

TEST(TabularGenerate, LawsAreLaws) {
  for (double delta : {0.0, 0.3, 1.0})
    for (double sparsity : {0.1, 0.5, 1.0}) {
      const FiniteSystem f = Tabular::generate(
          {.agents = 12, .dim = 2, .states = 10, .delta_env = delta, .sparsity = sparsity}, 3, 0);
      ASSERT_EQ(f.mu.size(), 120u);
      for (std::int64_t i = 0; i < 12; ++i) {
        double sum = 0;
        int differing = 0;
        for (int s = 0; s < 10; ++s) {
          EXPECT_GE(mu(f, i, s), 0);
          sum += mu(f, i, s);
          differing += std::abs(mu(f, i, s) - mu(f, 0, s)) > 1e-15;
        }
        EXPECT_NEAR(sum, 1, 1e-14);
        EXPECT_LE(differing, std::lround(sparsity * 10)) << "agent 0 has the base law";
        EXPECT_LE(total_variation(f, i, 0), delta + 1e-14);
        if (i > 0 && delta > 0 && sparsity > 0.1) {
          EXPECT_GT(differing, 0);
        }
      }
    }
}

TEST(TabularGenerate, MatricesKeepTheirBounds) {
  const FiniteSystem f =
      Tabular::generate({.dim = 4, .states = 20, .noise_A = 0.7, .noise_Phi = 0.4}, 4, 0);
  ASSERT_EQ(f.k, 4);
  double largest = 0;
  for (int s = 0; s < 20; ++s) {
    EXPECT_LE(operator_norm(Phi(f, s)), 1 + 1e-14);
    EXPECT_NEAR(operator_norm(A(f, s) - Matrix::identity(4)), 0.7, 1e-12);
    EXPECT_GE(smallest_symmetric(A(f, s)), 0.3 - 1e-12);
    largest = std::max(largest, operator_norm(A(f, s)));
  }
  const Tabular t(f, Tabular::Coe::kAuto);
  EXPECT_NEAR(t.G_A(), largest, 1e-13);
  EXPECT_LE(t.G_Phi(), 1 + 1e-14);
}

TEST(TabularGenerate, FirstAgentIsCentral) {
  const FiniteSystem f = Tabular::generate({.agents = 6, .delta_obj = 0.4}, 5, 0);
  const FiniteSystem none = Tabular::generate({.agents = 6, .delta_env = 0, .delta_obj = 0}, 5, 0);
  for (int s = 0; s < f.states; ++s) EXPECT_EQ(mu(f, 0, s), mu(none, 3, s));
  EXPECT_EQ(theta(f, 0), theta(none, 3));
  EXPECT_NEAR(norm(theta(f, 0)), 1, 1e-14);
  for (std::int64_t i = 1; i < 6; ++i) EXPECT_NEAR(norm(theta(f, i) - theta(f, 0)), 0.4, 1e-13);
  const FiniteSystem off =
      Tabular::generate({.agents = 6, .delta_obj = 0.4, .first_central = false}, 5, 0);
  EXPECT_NE(theta(off, 0), theta(f, 0));
  EXPECT_NE(mu(off, 0, 0), mu(f, 0, 0));
  EXPECT_EQ(theta(off, 4), theta(f, 4));  // nothing else moves
}

TEST(TabularGenerate, MoreAgentsDoNotChangeTheOthers) {
  const FiniteSystem few = Tabular::generate({.agents = 3}, 6, 1),
                     many = Tabular::generate({.agents = 30}, 6, 1);
  EXPECT_EQ(few.A, many.A);
  EXPECT_EQ(few.Phi, many.Phi);
  EXPECT_TRUE(std::equal(few.mu.begin(), few.mu.end(), many.mu.begin()));
  EXPECT_TRUE(std::equal(few.theta.begin(), few.theta.end(), many.theta.begin()));
}

TEST(TabularGenerate, SeedsAndReplicatesAreOtherSystems) {
  EXPECT_EQ(Tabular::generate({}, 1, 0).A, Tabular::generate({}, 1, 0).A);
  EXPECT_NE(Tabular::generate({}, 1, 0).A, Tabular::generate({}, 2, 0).A);
  EXPECT_NE(Tabular::generate({}, 1, 0).mu, Tabular::generate({}, 1, 1).mu);
}

TEST(TabularGenerate, FreeRideHasItsFirstAgentAtTheCentreAndAllOthersApart) {
  const FiniteSystem f = Tabular::generate(
      {.family = Tabular::Family::kFreeRide, .agents = 5, .dim = 3, .states = 4, .delta_obj = 0.5},
      7, 0);
  EXPECT_EQ(f.states, 16);
  const Tabular t(f, Tabular::Coe::kAuto);
  for (std::int64_t i = 1; i < 5; ++i) {
    for (std::int64_t j = 1; j < i; ++j) EXPECT_NEAR(total_variation(f, i, j), 1, 1e-14);
    EXPECT_NEAR(total_variation(f, i, 0), 0.75, 1e-14);
  }
  for (int s = 0; s < f.states; ++s) EXPECT_NEAR(mu(f, 0, s), t.mu0(s), 1e-15);  // mu^1 = mu^0
  for (int r = 0; r < 3; ++r) EXPECT_NEAR(theta(f, 0)[at(r)], t.truth()->thetac[at(r)], 1e-12);
}

TEST(TabularGenerate, ExchangeLeavesTheMixtureAloneAndTheRatioSparse) {
  const auto generate = [](std::int64_t agents, bool first_central, double sparsity) {
    return Tabular::generate({.family = Tabular::Family::kExchange,
                              .agents = agents,
                              .dim = 2,
                              .states = 10,
                              .delta_env = 0.8,
                              .sparsity = sparsity,
                              .first_central = first_central},
                             3, 0);
  };
  for (const auto& [agents, first_central] :
       {std::pair{8, false}, {9, true}, {9, false}, {2, false}})
    for (const double sparsity : {0.2, 0.4, 1.0}) {
      const Tabular t(generate(agents, first_central, sparsity), Tabular::Coe::kAuto);
      const int size = static_cast<int>(10 * sparsity);
      for (std::int64_t i = 0; i < agents; ++i) {
        // The central agent and an odd one out stay at the centre.
        const bool moves = first_central ? i > 0 : i / 2 * 2 + 1 < agents;
        int differing = 0;
        for (int s = 0; s < 10; ++s) {
          EXPECT_GT(t.probability(i, s), 0);
          differing += std::abs(t.rho(i, s) - 1) > 1e-12;
        }
        EXPECT_EQ(differing, moves ? size : 0) << agents << ' ' << i;
      }
    }
}

// apx:lower's pair: distance delta from the uniform mixture, for both m.
TEST(TabularGenerate, TwoPointIsThePairOfTheLowerBound) {
  for (const std::int64_t n : {2, 7})
    for (const std::uint32_t m : {0u, 1u}) {
      const double delta = 0.1;
      const FiniteSystem f = Tabular::generate(
          {.family = Tabular::Family::kTwoPoint, .agents = n, .states = 6, .delta_env = delta}, 5,
          m);
      const Tabular t(f, Tabular::Coe::kAuto);
      for (int s = 0; s < 6; ++s) {
        const double sign = (s + static_cast<int>(m)) % 2 == 0 ? 1 : -1;
        EXPECT_NEAR(t.mu0(s), 1.0 / 6, 1e-15);
        EXPECT_NEAR(mu(f, 0, s), 1.0 / 6 + 2 * delta * sign / 6, 1e-15);
        EXPECT_EQ(f.psi[at(2 * s)], 1);
        EXPECT_EQ(f.psi[at(2 * s + 1)], s % 2 == 0 ? 1 : -1);
      }
    }
}

TEST(TabularGenerate, InTheLawSystemTheSolutionIsTheEnvironment) {
  for (const Tabular::Family family :
       {Tabular::Family::kMixture, Tabular::Family::kExchange, Tabular::Family::kTwoPoint}) {
    const FiniteSystem f = Tabular::generate({.family = family,
                                              .system = Tabular::System::kLaw,
                                              .agents = 5,
                                              .states = 6,
                                              .delta_obj = 0.25},
                                             3, 0);
    const Tabular t(f, Tabular::Coe::kAuto);
    const Field x{0, 6};
    const In solution = t.truth()->x.block(0)[x];
    for (int i = 0; i < 5; ++i) {
      const double weight = theta(f, i)[0];
      EXPECT_NEAR(std::abs(weight - 1), i == 0 ? 0 : 0.25, 1e-15);
      for (int s = 0; s < 6; ++s) EXPECT_NEAR(solution.at(s, i), weight * mu(f, i, s), 1e-14);
    }
  }
}

TEST(TabularGenerate, AnglesTurnBothWays) {
  const FiniteSystem f =
      Tabular::generate({.dim = 2, .states = 2, .noise_A = 0, .angle = 60}, 8, 0);
  const double half = 0.5, root = std::sqrt(3.0) / 2;
  EXPECT_LE(norm(A(f, 0).all() - Vector{half, -root, root, half}), 1e-15);
  EXPECT_LE(norm(A(f, 1).all() - Vector{half, root, -root, half}), 1e-15);
}

// ---- samples ----

TEST(Tabular, SamplesFollowTheAgentsLaw) {
  // Chi-square over the states an agent sees, at most 4 degrees of freedom: above 35 with rate
  // below 1e-6 per agent; four agents.
  const Tabular t(Tabular::generate({.agents = 4, .states = 5, .delta_env = 0.9}, 9, 0),
                  Tabular::Coe::kAuto);
  const FiniteSystem& f = t.system();
  constexpr std::uint32_t kDraws = 4000;
  Matrix seen(4, 5);
  const BlockRows s(1);
  for (std::uint32_t step = 0; step < kDraws; ++step) {
    t.draw({{3, 0, step}, {}}, {{0, 4}, nullptr}, s.out());
    for (int i = 0; i < 4; ++i) ++seen(at(i), static_cast<std::size_t>(s.in().at(0, i)));
    for (int l = 4; l < kLanes; ++l) ASSERT_EQ(s.in().at(0, l), 0);
  }
  for (int i = 0; i < 4; ++i) {
    double chi2 = 0;
    for (int k = 0; k < 5; ++k)
      chi2 += std::pow(seen(at(i), at(k)) - kDraws * mu(f, i, k), 2) / (kDraws * mu(f, i, k));
    EXPECT_LT(chi2, 35) << "agent " << i;
  }
}

TEST(Tabular, AFixedOrderOfStatesIsFollowed) {
  FiniteSystem f = arbitrary(3, 4, 2, 2, false, 6);
  f.steps = 5;
  for (int i = 0; i < 15; ++i) f.order.push_back(i * 7 % 4);
  const Tabular t(f, Tabular::Coe::kAuto);
  EXPECT_EQ(most_samples(t), 5);
  const BlockRows s(1);
  for (std::uint32_t step = 0; step < 5; ++step) {
    t.draw({{1, 0, step}, {}}, {{0, 3}, nullptr}, s.out());
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(s.in().at(0, i), f.order[at(i * 5 + static_cast<int>(step))]);
  }
  EXPECT_EQ(most_samples(Tabular(arbitrary(3, 4, 2, 2, false, 6), Tabular::Coe::kAuto)), INT64_MAX);
}

TEST(Tabular, EverySampleHasItsMatrices) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    for (std::int64_t blk = 0; blk < blocks_of(f.agents); ++blk) {
      const Lanes lanes = lanes_of(blk, f.agents);
      const BlockRows s(1), x(f.d), th(f.k), y(f.d), psi(f.p), cell(1), g(f.k), bhat(f.d), own(f.d);
      for (int l = 0; l < lanes.count; ++l) {
        s.out().row(0)[l] = (l * 5 + 1) % f.states;
        for (int r = 0; r < f.d; ++r) x.out().row(r)[l] = std::sin(l + r);
        for (int r = 0; r < f.k; ++r) th.out().row(r)[l] = std::cos(l - r);
      }
      const auto state = [&](int l) { return static_cast<int>(s.in().at(0, l)); };
      apply(t, lanes, s.in(), x.in(), y.out());
      for (int l = 0; l < lanes.count; ++l)
        EXPECT_LE(norm(y.lane(l) - A(f, state(l)) * x.lane(l)), 1e-13);
      t.objective(lanes, s.in(), own.out());
      for (int l = 0; l < lanes.count; ++l)
        EXPECT_LE(norm(own.lane(l) - b(f, lanes.first + l, state(l))), 1e-13);
      known_objective(t, lanes, s.in(), y.out());
      for (int l = 0; l < lanes.count; ++l) {
        Vector b0(at(f.d));
        for (std::int64_t j = 0; j < f.agents; ++j)
          b0 += b(f, j, state(l)) / static_cast<double>(f.agents);
        EXPECT_LE(norm(y.lane(l) - b0), 1e-13);
      }
      t.cell(lanes, s.in(), cell.out());
      for (int l = 0; l < lanes.count; ++l) EXPECT_EQ(cell.in().at(0, l), state(l));
      if (f.p > 0) t.psi(lanes, s.in(), psi.out());
      for (int l = 0; l < lanes.count; ++l)
        for (int r = 0; r < f.p; ++r) EXPECT_EQ(psi.in().at(r, l), f.psi[at(state(l) * f.p + r)]);
      if (f.k == 0) continue;
      apply_Phi(t, lanes, s.in(), th.in(), bhat.out());
      for (int l = 0; l < lanes.count; ++l)
        EXPECT_LE(norm(bhat.lane(l) - Phi(f, state(l)) * th.lane(l)), 1e-13);
      t.coe(lanes, s.in(), own.in(), th.in(), bhat.in(), g.out());
      for (int l = 0; l < lanes.count; ++l) {
        const Vector rest = bhat.lane(l) - own.lane(l);
        const Vector want = f.k == f.d ? rest : transpose(Phi(f, state(l))) * rest;
        EXPECT_LE(norm(g.lane(l) - want), 1e-13);
      }
    }
    EXPECT_EQ(t.facets().table->cells(), f.states);
    EXPECT_EQ(t.facets().table->width(), f.d);
    EXPECT_EQ(t.shape().k, f.k);
    EXPECT_EQ(t.shape().p, f.p);
  }
}

// ---- means and truth ----

TEST(Tabular, MeansAreSumsOverTheStates) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    Vector x, th;
    for (int r = 0; r < f.d; ++r) x.push_back(std::sin(r + 1.0));
    for (int r = 0; r < f.k; ++r) th.push_back(std::cos(r + 1.0));
    for (std::int64_t blk = 0; blk < blocks_of(f.agents); ++blk) {
      const Lanes lanes = lanes_of(blk, f.agents);
      const BlockRows Ax(f.d), bbar(f.d), bhat(f.d), g(f.k);
      t.mean_apply(lanes, shared(x), Ax.out());
      t.mean_objective(lanes, bbar.out());
      if (f.k > 0) t.mean_Phi(lanes, shared(th), bhat.out());
      if (f.k > 0) t.mean_coe(lanes, shared(th), g.out());
      for (int l = 0; l < lanes.count; ++l) {
        Vector wantA(at(f.d)), wantb = wantA, wantPhi = wantA, wantg(at(f.k));
        for (int s = 0; s < f.states; ++s) {
          const double m = mu(f, lanes.first + l, s);
          const Vector bs = b(f, lanes.first + l, s);
          wantA += m * A(f, s) * x;
          wantb += m * bs;
          if (f.k == 0) continue;
          const Vector rest = Phi(f, s) * th - bs;
          wantPhi += m * Phi(f, s) * th;
          wantg += m * (f.k == f.d ? rest : transpose(Phi(f, s)) * rest);
        }
        EXPECT_LE(norm(Ax.lane(l) - wantA), 1e-13);
        EXPECT_LE(norm(bbar.lane(l) - wantb), 1e-13);
        if (f.k > 0) {
          EXPECT_LE(norm(bhat.lane(l) - wantPhi), 1e-13);
          EXPECT_LE(norm(g.lane(l) - wantg), 1e-13);
        }
      }
    }
  }
}

TEST(Tabular, TruthSolvesItsSystems) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    ASSERT_NE(t.truth(), nullptr);
    const Truth& truth = *t.truth();
    const Vector &xc = truth.xc, &thetac = truth.thetac;
    Vector central(at(f.d)), objective(at(f.k));
    ASSERT_EQ(truth.thetac.size(), at(f.k));
    for (std::int64_t i = 0; i < f.agents; ++i) {
      Vector x, residual(at(f.d));
      for (int r = 0; r < f.d; ++r)
        x.push_back(truth.x.block(i / kLanes)[Field{0, f.d}].row(r)[i % kLanes]);
      for (int s = 0; s < f.states; ++s) {
        const double m = mu(f, i, s);
        residual += m * (A(f, s) * x - b(f, i, s));
        central += m * (A(f, s) * xc - b(f, i, s));
        if (f.k == 0) continue;
        const Vector rest = Phi(f, s) * thetac - b(f, i, s);
        objective += m * (f.k == f.d ? rest : transpose(Phi(f, s)) * rest);
      }
      EXPECT_LE(norm(residual), 1e-12 * (1 + norm(x)));
    }
    const double n = static_cast<double>(f.agents);
    EXPECT_LE(norm(central) / n, 1e-12 * (1 + norm(xc)));
    EXPECT_LE(norm(objective) / n, 1e-10 * (1 + norm(thetac)));
  }
}

TEST(Tabular, CoeIsWhatWasAskedFor) {
  const FiniteSystem square = arbitrary(3, 4, 2, 2, false, 1),
                     tall = arbitrary(3, 4, 3, 2, false, 1);
  const BlockRows s(1), zero(3), g(2), bhat(3);
  fill(bhat.out(), 1);
  const auto coe = [&](const FiniteSystem& f, Tabular::Coe how) {
    Tabular(f, how).coe({0, 1}, s.in(), {zero.in().p, f.d, kLanes}, {}, {bhat.in().p, f.d, kLanes},
                        g.out());
    return g.lane(0);
  };
  EXPECT_EQ(coe(square, Tabular::Coe::kAuto), Vector(2, 1.0));
  EXPECT_EQ(coe(square, Tabular::Coe::kResidual), Vector(2, 1.0));
  EXPECT_LE(norm(coe(square, Tabular::Coe::kGradient) - transpose(Phi(square, 0)) * Vector(2, 1.0)),
            1e-15);
  EXPECT_LE(norm(coe(tall, Tabular::Coe::kAuto) - transpose(Phi(tall, 0)) * Vector(3, 1.0)), 1e-14);
  EXPECT_THROW(Tabular(tall, Tabular::Coe::kResidual), BadInput);
}

TEST(Tabular, CanBeEnumerated) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    ASSERT_EQ(t.outcomes(), f.states);
    const BlockRows s(1);
    for (int o = 0; o < t.outcomes(); ++o) {
      t.outcome({0, 1}, o, s.out());
      for (int l = 0; l < kLanes; ++l) ASSERT_EQ(s.in().at(0, l), o);
      for (std::int64_t i = 0; i < f.agents; ++i) EXPECT_EQ(t.probability(i, o), mu(f, i, o));
    }
    for (std::int64_t i = 0; i < f.agents; ++i)
      EXPECT_NEAR(t.densities()->tv(i, 0), total_variation(f, i, 0), 1e-15);
  }
}

TEST(Tabular, GPhiBoundsTheMapOfCoe) {  // Phi, or Phi'Phi in gradient form
  const FiniteSystem f = arbitrary(3, 4, 2, 2, false, 1);
  double largest = 0;
  for (int s = 0; s < 4; ++s) largest = std::max(largest, operator_norm(Phi(f, s)));
  EXPECT_NEAR(Tabular(f, Tabular::Coe::kResidual).G_Phi(), largest, 1e-13);
  EXPECT_NEAR(Tabular(f, Tabular::Coe::kGradient).G_Phi(), largest * largest, 1e-12);
  EXPECT_EQ(Tabular(arbitrary(3, 4, 2, 0, true, 1), Tabular::Coe::kAuto).G_Phi(), 0);
}

TEST(Tabular, ASingularSystemIsRefused) {
  FiniteSystem f = arbitrary(2, 1, 2, 0, true, 1);
  f.A = {1, 2, 2, 4};
  try {
    const Tabular t(f, Tabular::Coe::kAuto);
    FAIL() << "a singular mean matrix was accepted";
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("agent 0"), std::string::npos) << e.what();
  }
}

// Refused by its condition, not by its size: at 1e-9 a bound settles it, at 1e-12 the estimate.
TEST(Tabular, ANearlySingularSystemIsRefusedWhereItsSolutionMeansNothing) {
  FiniteSystem f = arbitrary(2, 1, 2, 0, true, 1);
  for (const double scale : {1e-200, 1.0, 1e200})
    for (const double small : {1.0, 1e-9, 1e-12, 1e-15, 1e-18}) {
      f.A = {scale, scale * (1 - small), scale * (1 - small), scale};  // condition 2 / small
      if (small > 1e-14) {
        EXPECT_NO_THROW(Tabular(f, Tabular::Coe::kAuto)) << small << " " << scale;
      } else {
        EXPECT_THROW(Tabular(f, Tabular::Coe::kAuto), BadInput) << small << " " << scale;
      }
    }
}

// Every agent's own system may be fine while the mean of them is not: I and -I.
TEST(Tabular, ASingularCentreIsRefusedNotNaN) {
  FiniteSystem f;
  f.agents = 2, f.states = 2, f.d = 1;
  f.A = {1, -1};
  f.mu = {1, 0, 0, 1};
  f.b = {1, 1, 1, 1};
  EXPECT_THROW(Tabular(f, Tabular::Coe::kAuto), BadInput);
}

std::vector<double> start_of(const Problem& problem, int agent) {
  const int d = problem.shape().d;
  const Buffer space(at(d) * kLanes);
  problem.start(lanes_of(0, problem.shape().agents), {space.data(), d});
  std::vector<double> own;
  for (int r = 0; r < d; ++r) own.push_back(space.data()[r * kLanes + agent]);
  return own;
}

TEST(Tabular, StartsAreZeroUnlessGiven) {
  FiniteSystem f = arbitrary(3, 4, 2, 1, false, 1);
  const Tabular plain(f, Tabular::Coe::kAuto);
  EXPECT_EQ(start_of(plain, 2), (std::vector<double>{0, 0}));
  EXPECT_EQ(central_start(plain).x, (std::vector<double>{0, 0}));
  EXPECT_EQ(central_start(plain).theta, (std::vector<double>{0}));
  f.x0 = {1, 2, 3, 4, 5, 6};
  f.xc0 = {7, 8};
  f.thetac0 = {9};
  const Tabular given(f, Tabular::Coe::kAuto);
  EXPECT_EQ(start_of(given, 1), (std::vector<double>{3, 4}));
  EXPECT_EQ(central_start(given).x, (std::vector<double>{7, 8}));
  EXPECT_EQ(central_start(given).theta, (std::vector<double>{9}));
}

// ---- densities ----

TEST(TabularDensities, RatiosAverageToOne) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    for (std::int64_t i = 0; i < f.agents; ++i) {
      double sum = 0;
      for (int s = 0; s < f.states; ++s) sum += t.mu0(s) * t.rho(i, s);
      EXPECT_NEAR(sum, 1, 1e-13);  // sum_s mu^0 rho^i = 1
    }
    for (int s = 0; s < f.states; ++s) {
      double sum = 0;
      for (std::int64_t i = 0; i < f.agents; ++i) {
        EXPECT_GE(t.rho(i, s), 0);
        EXPECT_LE(t.rho(i, s), static_cast<double>(f.agents) * (1 + 1e-14));
        sum += t.rho(i, s) / static_cast<double>(f.agents);
      }
      EXPECT_NEAR(sum, t.mu0(s) > 0 ? 1 : 0, 1e-13);
    }
    EXPECT_EQ(t.densities()->p(), f.states);
  }
}

TEST(TabularDensities, AStateNobodySeesHasRatioZero) {
  FiniteSystem f = arbitrary(2, 2, 1, 1, false, 1);
  f.mu = {1, 0, 1, 0};
  const Tabular t(f, Tabular::Coe::kAuto);
  EXPECT_EQ(t.rho(0, 1), 0);
  EXPECT_EQ(t.rho(0, 0), 1);
}

TEST(TabularDensities, SumsOverAllSamplesEqualTheBruteForce) {
  for (const FiniteSystem& f : systems()) {
    const Tabular t(f, Tabular::Coe::kAuto);
    const int rows = 2;
    std::vector<double> M(at(f.states * rows));
    std::vector<int> state;
    Matrix G(at(f.agents), rows);
    Scratch scratch;
    for (std::int64_t blk = 0; blk < blocks_of(f.agents); ++blk) {
      const Lanes lanes = lanes_of(blk, f.agents);
      const BlockRows s(1), g(rows), own(1);
      t.draw({{4, 0, 1}, {}}, {lanes, nullptr}, s.out());
      for (int l = 0; l < kLanes; ++l)
        for (int r = 0; r < rows; ++r) g.out().row(r)[l] = l < lanes.count ? std::sin(l + r) : NAN;
      t.densities()->accumulate(lanes, s.in(), g.in(), scratch, M.data());
      t.densities()->own(lanes, s.in(), scratch, own.out());
      for (int l = 0; l < lanes.count; ++l) {
        state.push_back(static_cast<int>(s.in().at(0, l)));
        for (int r = 0; r < rows; ++r) G(at(lanes.first + l), at(r)) = g.in().at(r, l);
        EXPECT_EQ(own.in().at(0, l), t.rho(lanes.first + l, state.back()));
      }
    }
    for (std::int64_t blk = 0; blk < blocks_of(f.agents); ++blk) {
      const Lanes lanes = lanes_of(blk, f.agents);
      const BlockRows got(rows);
      t.densities()->correct(lanes, M.data(), got.out());
      for (int l = 0; l < lanes.count; ++l)
        for (int r = 0; r < rows; ++r) {
          double want = 0, size = 0;
          for (std::int64_t j = 0; j < f.agents; ++j) {
            const double rho = t.rho(lanes.first + l, state[at(j)]);
            want += rho * G(at(j), at(r)), size += std::abs(rho * G(at(j), at(r)));
          }
          EXPECT_NEAR(got.in().at(r, l), want, 1e-13 * size);
        }
    }
  }
}

}  // namespace
}  // namespace affpcl
