// Logs written from known chains: values approach the exact ones like N^-1/2, and together faster
// than alone.
#include "affpcl/problem/td_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "affpcl/data/file_test.h"
#include "affpcl/math/statistics.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/mdp.h"
#include "affpcl/problem/td.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Rows of the kernels are far from sparse, so every state is met often and the start forgotten.
constexpr Td::Config kChains{.agents = 8,
                             .states = 4,
                             .dim = 2,
                             .gamma = 0.5,
                             .delta_env = 0.2,
                             .delta_obj = 0.2,
                             .concentration = 5,
                             .rewards = Td::Rewards::kTable,
                             .sampling = Td::Sampling::kMarkov};

class TdLogRates : public FileTest {
 protected:
  // Each agent's trajectory of `rows` transitions, agents in turn. Named states, or td's features.
  void record(const Td& td, std::int64_t rows, std::uint32_t replicate, bool features) const {
    Layout world, sample;
    td.declare(world, sample);
    const int n = static_cast<int>(kChains.agents), S = kChains.states, d = kChains.dim;
    const Buffer memory(at(world.rows()) * kLanes), space(at(sample.rows()) * kLanes);
    const Out s{space.data(), sample.rows()};
    std::string text =
        features ? "agent,a,b,next_a,next_b,reward\n" : "agent,state,next_state,reward\n";
    for (std::int64_t t = 0; t < rows; ++t) {
      td.draw({{9, replicate, static_cast<std::uint32_t>(t)}, {}}, {{0, n}, memory.data()}, s);
      for (int i = 0; i < n; ++i) {
        const int pair = static_cast<int>(s.row(s.rows - 1)[i]), o = pair / S, next = pair % S;
        const double* phi = td.features().data();
        if (features)
          text += fmt::format("site {},{},{},{},{},{}\n", i, phi[o * d], phi[o * d + 1],
                              phi[next * d], phi[next * d + 1], td.reward(i, o, next));
        else
          text += fmt::format("site {},{},{},{}\n", i, o, next, td.reward(i, o, next));
      }
    }
    write(text);
  }

  // The exact solution of every agent: its values, or their projection on td's features.
  static std::vector<std::vector<double>> exact(const Td& td, bool features) {
    std::vector<std::vector<double>> x;
    const int S = kChains.states;
    for (std::int64_t i = 0; i < kChains.agents; ++i) {
      const Chain chain{S, td.kernel(i)};
      std::vector<double> r(at(S), 0.0);
      for (int pair = 0; pair < S * S; ++pair)
        r[at(pair / S)] += chain.P[at(pair)] * td.reward(i, pair / S, pair % S);
      x.push_back(features ? projected_fixed_point({S, kChains.dim, td.features()},
                                                   stationary(chain), chain, r, kChains.gamma)
                           : chain_values(chain, r, kChains.gamma));
    }
    return x;
  }

  // Mean squared error of AffPCL and alone, once through a log of so many rows.
  std::pair<double, double> run(const Td& td, std::int64_t rows, std::uint32_t replicate,
                                bool features) const {
    record(td, rows, replicate, features);
    TdLog::Config config{.file = path, .gamma = kChains.gamma};
    if (features) config.features = "a,b";
    const TdLog log(config);
    // alpha_t = 4 / (lambda (t + t0 + 1)) with the lambdas of the log itself. (A constant step
    // would not do: on trajectories its bias does not vanish with N.)
    const Monotonicity lambda = monotonicity(log);
    StepSizes step;
    const auto module = [](double l) -> StepSizes::Module {
      return {{.kind = Schedule::Kind::kDiminishing, .t0 = 100}, 1 / l};
    };
    step.agent = module(1), step.central = module(lambda.central), step.ratio = module(1);
    if (features) step.objective = module(lambda.objective);
    for (double l : lambda.agents) step.agent_factors.push_back(1 / l);
    std::vector<RunMethod> methods;
    const auto add = [&](const char* kind, const std::map<std::string, Value>& given) {
      const MethodKind& k = method_kind(kind);
      methods.push_back({kind, k.make(Values(k.params, given, kind)), 1, 1, step});
    };
    add("affpcl", {{"ratio", std::string(features ? "linear" : "counts")}});
    add("independent", {});
    RunOptions options;
    options.steps = rows;
    const std::unique_ptr<Team> team = serial_team();
    affpcl::Run play(log, std::move(methods), options, *team);
    play.advance(rows);
    const std::vector<std::vector<double>> want = exact(td, features);
    const std::size_t d = want[0].size();
    double error[2] = {};
    for (std::size_t m = 0; m < 2; ++m) {
      const Record record = play.finish()[m];
      EXPECT_EQ(record.diverged_at, -1);
      EXPECT_TRUE(std::isnan(record.mse));
      EXPECT_TRUE(std::isnan(record.agent_mse[0]));
      for (std::size_t j = 0; j < record.solution.size(); ++j)
        error[m] += std::pow(record.solution[j] - want[j / d][j % d], 2);
    }
    return {error[0] / kChains.agents, error[1] / kChains.agents};
  }

  // The mean squared error falls like 1/N, so its root like N^-1/2: slope -1 +- .25, four or more
  // of its own (jackknife) standard errors, a false alarm in 1e-4 of seeds. In the average over
  // agents AffPCL is better than alone at every N.
  void expect_rate(bool features) const {
    constexpr std::uint32_t kRepeats = 12;
    const std::vector<double> rows = {1000, 4000, 16000};
    Td::Config config = kChains;
    if (features) config.delta_env = 0;  // the linear ratio is right then
    const Td td(config, 5, 0);
    std::vector<std::vector<double>> ours, theirs;  // [N][repeat]
    for (double N : rows) {
      ours.emplace_back(), theirs.emplace_back();
      for (std::uint32_t r = 0; r < kRepeats; ++r) {
        const auto [affpcl, alone] = run(td, static_cast<std::int64_t>(N), r, features);
        ours.back().push_back(affpcl), theirs.back().push_back(alone);
      }
      EXPECT_LT(ratio_of_means(ours.back(), theirs.back()).hi, 0.8) << "N = " << N;
    }
    for (const auto& values : {ours, theirs}) {
      const auto without = [&](std::size_t left_out) {
        std::vector<double> x, y;
        for (std::size_t p = 0; p < rows.size(); ++p) {
          double sum = 0;
          for (std::size_t r = 0; r < kRepeats; ++r) sum += r == left_out ? 0 : values[p][r];
          x.push_back(std::log(rows[p])), y.push_back(std::log(sum));
        }
        return slope(x, y).mean;
      };
      std::vector<double> each;
      for (std::size_t r = 0; r < kRepeats; ++r) each.push_back(without(r));
      double square = 0;
      for (double s : each) square += (s - mean(each)) * (s - mean(each));
      EXPECT_NEAR(without(kRepeats), -1, 0.25);
      EXPECT_LT(std::sqrt(square * (1 - 1.0 / kRepeats)), 0.0625);
    }
  }
};

TEST_F(TdLogRates, NamedStates) { expect_rate(false); }
TEST_F(TdLogRates, Features) { expect_rate(true); }

}  // namespace
}  // namespace affpcl
