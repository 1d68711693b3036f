// What learnt ratios do to the direction, exactly: every history of a small finite system, weighted
// with its probability.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "affpcl/density/harness_test.h"
#include "affpcl/math/statistics.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/tabular.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

constexpr int kAgents = 2, kStates = 4;
using Samples = RatioHarness::Samples;

double g_of(int state, int row) { return std::sin(1.0 + 3 * state + row); }

const Tabular& problem() {
  static const Tabular kProblem(
      Tabular::generate({.agents = kAgents, .dim = 2, .states = kStates, .delta_env = 0.8}, 4, 0),
      Tabular::Coe::kAuto);
  return kProblem;
}

// Calls f(history, probability) for all histories of `rounds` rounds.
template <class F>
void enumerate(int rounds, F f) {
  int all = 1;
  for (int k = 0; k < rounds * kAgents; ++k) all *= kStates;
  for (int number = 0; number < all; ++number) {
    std::vector<Samples> history(static_cast<std::size_t>(rounds), Samples(kAgents));
    double probability = 1;
    int rest = number;
    for (Samples& s : history)
      for (int i = 0; i < kAgents; ++i) {
        s[static_cast<std::size_t>(i)] = rest % kStates;
        probability *= problem().probability(i, rest % kStates);
        rest /= kStates;
      }
    f(history, probability);
  }
}

using Given = std::map<std::string, Value>;

// eq:correction: given the past, the direction is off by
// E_mu0[(rhohat - rho)(A x^c - Phi theta^c)], whatever rhohat is.
void expect_bias_identity(const Given& given) {
  double largest = 0;
  enumerate(2, [&](const std::vector<Samples>& past, double) {
    std::vector<double> bias(kAgents * 2, 0.0), predicted(kAgents * 2, 0.0);
    enumerate(1, [&](const std::vector<Samples>& now, double probability) {
      RatioHarness h(problem(), ratio_of(given), g_of);
      for (const Samples& s : past) h.round(s);
      h.round(now[0]);
      for (int i = 0; i < kAgents; ++i)
        for (int r = 0; r < 2; ++r) {
          const auto at = static_cast<std::size_t>(2 * i + r);
          const int own = now[0][static_cast<std::size_t>(i)];
          bias[at] += probability * (h.rg(i, r) - g_of(own, r));
          predicted[at] = 0;
          for (int s = 0; s < kStates; ++s)
            predicted[at] += problem().mu0(s) * (h.rho(i, s) - problem().rho(i, s)) * g_of(s, r);
        }
    });
    for (std::size_t at = 0; at < bias.size(); ++at) {
      EXPECT_NEAR(bias[at], predicted[at], 1e-12);
      largest = std::max(largest, std::abs(bias[at]));
    }
  });
  EXPECT_GT(largest, 0.05);  // or the identity would say nothing
}

std::vector<double> mean_h(const Given& given, int rounds) {
  std::vector<double> mean(kAgents * 2, 0.0);
  enumerate(rounds, [&](const std::vector<Samples>& history, double probability) {
    RatioHarness h(problem(), ratio_of(given), g_of);
    for (const Samples& s : history) h.round(s);
    for (int i = 0; i < kAgents; ++i)
      for (int r = 0; r < 2; ++r)
        mean[static_cast<std::size_t>(2 * i + r)] +=
            probability * (h.rg(i, r) - g_of(history.back()[static_cast<std::size_t>(i)], r));
  });
  return mean;
}

TEST(TheoryDensity, PastCountsAreOffByTheErrorOfTheRatio) {
  expect_bias_identity({{"ratio", "counts"}, {"shrink", "none"}});
  expect_bias_identity({{"ratio", "counts"}});
}

TEST(TheoryDensity, SoIsEveryRatioOfThePast) {
  expect_bias_identity({{"ratio", "linear"}, {"features", "polynomial"}, {"ridge", 0.1}});
  expect_bias_identity({{"ratio", "sparse"}, {"threshold", 0.3}});
  expect_bias_identity({{"ratio", "sparse"}, {"threshold", 0.3}, {"penalty", "l1"}});
  expect_bias_identity({{"ratio", "coupled"}});
}

// By exchangeability, round by round: E[h] = 0 though every single rhohat is wrong.
TEST(TheoryDensity, CountsWithTheCurrentSampleAreUnbiased) {
  const Given current = {{"ratio", "counts"}, {"counting", "current"}, {"shrink", "none"}};
  for (const int rounds : {1, 2, 3})
    for (const double mean : mean_h(current, rounds)) EXPECT_NEAR(mean, 0, 1e-12);
  double largest = 0;
  for (const double mean : mean_h({{"ratio", "counts"}, {"shrink", "none"}}, 2))
    largest = std::max(largest, std::abs(mean));
  EXPECT_GT(largest, 1e-3);  // past counts are biased in the mean too
}

// E_mu0 |rhohat - rho|^2 of agent 1 after each of `times` rounds, mean over runs; samples by the
// problem's own stream.
std::vector<double> risk(const Tabular& system, const Given& given, const std::vector<int>& times,
                         std::uint32_t runs) {
  const auto n = static_cast<int>(system.shape().agents);
  std::vector<double> out(times.size(), 0.0);
  for (std::uint32_t run = 0; run < runs; ++run) {
    RatioHarness h(system, ratio_of(given), g_of);
    h.replicate = run;
    Buffer s(kLanes);
    std::size_t next = 0;
    for (int t = 1; next < times.size(); ++t) {
      system.draw({{21, run, static_cast<std::uint32_t>(t)}, {}}, {{0, n}, nullptr}, {s.data(), 1});
      Samples states;
      for (int i = 0; i < n; ++i) states.push_back(static_cast<int>(s.data()[i]));
      h.round(states);
      if (t != times[next]) continue;
      for (int k = 0; k < system.outcomes(); ++k) {
        const double gap = h.rho(1, k) - system.rho(1, k);
        out[next] += system.mu0(k) * gap * gap / runs;
      }
      ++next;
    }
  }
  return out;
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
    const std::vector<double> error = risk(system, given, times, 200);
    std::vector<double> x, y;
    for (std::size_t k = 0; k < times.size(); ++k)
      x.push_back(std::log(times[k])), y.push_back(std::log(error[k]));
    EXPECT_NEAR(slope(x, y).mean, -1, 0.1) << std::get<std::string>(given.at("ratio"));
  }
}

// Agents 1 and 2 differ from the others in two states of 20 each: thresholds and coupled pairs find
// that with a fraction of the error of plain counts. Fixed seed; the bounds are ours, not a
// theorem's.
TEST(StatisticsDensity, StructureHelps) {
  FiniteSystem finite = Tabular::generate(
      {.agents = 4, .dim = 2, .states = 20, .delta_env = 0, .delta_obj = 0}, 2, 0);
  finite.mu.assign(80, 0.05);
  for (const int i : {1, 2})  // one state up and one down
    finite.mu[static_cast<std::size_t>(20 * i + i)] = 0.09,
                                                finite
                                                    .mu[static_cast<std::size_t>(20 * i + i + 5)] =
                                                    0.01;
  const Tabular system(finite, Tabular::Coe::kAuto);
  const auto of = [&](const Given& given) { return risk(system, given, {1000}, 40).front(); };
  const double plain = of({{"ratio", "counts"}, {"shrink", "none"}});
  EXPECT_LT(of({{"ratio", "counts"}}), plain);
  EXPECT_LT(of({{"ratio", "sparse"}}), 0.5 * plain);
  EXPECT_LT(of({{"ratio", "coupled"}}), 0.3 * plain);
}

// Frequencies of 40,000 pairs against the probabilities, at 4.5 standard deviations (two-sided
// false alarms 7e-6 each).
TEST(StatisticsDensity, CoupledPairsHaveTheirMarginalsAndAgreeAsOftenAsTheyCan) {
  const int draws = 40000;
  std::vector<double> own(kStates), mixed(kStates);
  double same = 0, tv = 0;
  Buffer a(kLanes), b(kLanes);
  for (int t = 0; t < draws; ++t) {
    problem().draw_pair({{3, 0, static_cast<std::uint32_t>(t)}, {}}, {0, kAgents}, {a.data(), 1},
                        {b.data(), 1});
    own[static_cast<std::size_t>(a.data()[1])] += 1.0 / draws;
    mixed[static_cast<std::size_t>(b.data()[1])] += 1.0 / draws;
    same += (a.data()[1] == b.data()[1]) / static_cast<double>(draws);
  }
  const auto expect_share = [&](double share, double p) {
    EXPECT_NEAR(share, p, 4.5 * std::sqrt(p * (1 - p) / draws) + 1e-9);
  };
  for (int s = 0; s < kStates; ++s) {
    expect_share(own[static_cast<std::size_t>(s)], problem().probability(1, s));
    expect_share(mixed[static_cast<std::size_t>(s)], problem().mu0(s));
    tv += std::abs(problem().probability(1, s) - problem().mu0(s)) / 2;
  }
  expect_share(same, 1 - tv);
}

// Both forms of the paper's iteration with alpha_t = 4/(t + 11) come to the ratio. Fixed seed; the
// tolerance only tells convergence from none.
TEST(StatisticsDensity, TheFixedPointIterationsConverge) {
  for (const char* form : {"minus-one", "ratio"}) {
    RatioHarness h(problem(), ratio_of({{"ratio", "fixed-point"}, {"form", form}}), g_of);
    h.steps().ratio.schedule = {.kind = Schedule::Kind::kDiminishing, .t0 = 10};
    Buffer s(kLanes);
    for (int t = 0; t < 20000; ++t) {
      problem().draw({{5, 0, static_cast<std::uint32_t>(t)}, {}}, {{0, kAgents}, nullptr},
                     {s.data(), 1});
      h.round(Samples{static_cast<int>(s.data()[0]), static_cast<int>(s.data()[1])});
    }
    for (int i = 0; i < kAgents; ++i)
      for (int k = 0; k < kStates; ++k) EXPECT_NEAR(h.rho(i, k), problem().rho(i, k), 0.15) << form;
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
      affpcl::Run run(system, std::move(methods), options, *team);
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
