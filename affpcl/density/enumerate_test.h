// What a ratio does to the direction, exactly: every history of a small finite system, weighted
// with its probability.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "affpcl/density/harness_test.h"
#include "affpcl/problem/tabular.h"

namespace affpcl::enumeration {

inline constexpr int kAgents = 2, kStates = 4;
using Samples = RatioHarness::Samples;

inline double g_of(int state, int row) { return std::sin(1.0 + 3 * state + row); }

inline const Tabular& problem() {
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
inline void expect_bias_identity(const Given& given) {
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

inline std::vector<double> mean_h(const Given& given, int rounds) {
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

// E_mu0 |rhohat - rho|^2 of agent 1 after each of `times` rounds, mean over runs; samples by the
// problem's own stream.
inline std::vector<double> risk(const Tabular& system, const Given& given,
                                const std::vector<int>& times, std::uint32_t runs) {
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

}  // namespace affpcl::enumeration
