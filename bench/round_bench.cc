// One AffPCL round with a learnt linear ratio (p = 32) and with exact densities, Gaussian system,
// d = 20: time, peak memory, and the exponent of the processors' time in the number of agents.
// docs/decisions/009-learnt-ratios.md has the numbers.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/run.h"

namespace affpcl {
namespace {

// Peak resident memory of the process since the last reset, in MB; 0 where the system does not
// tell.
void reset_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
}
double peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stod(word) / 1024;
  return 0;
}

// Slope of log time in log n over the sizes measured so far; NaN for the first.
double exponent(const std::string& series, double n, double seconds) {
  static std::map<std::string, std::map<double, double>> measured;
  measured[series][n] = seconds;
  std::vector<double> x, y;
  for (const auto& [agents, time] : measured[series])
    x.push_back(std::log(agents)), y.push_back(std::log(time));
  return x.size() < 2 ? NAN : slope(x, y).mean;
}

void rounds(benchmark::State& state, const std::string& ratio) {
  const std::int64_t n = state.range(0);
  const int threads = static_cast<int>(state.range(1));
  reset_peak();
  const Gaussian problem({.agents = n, .dim = 20}, 1, 0);
  const MethodKind& kind = method_kind("affpcl");
  std::vector<RunMethod> methods(1);
  methods[0].name = ratio;
  methods[0].method = kind.make(Values(kind.params, {{"ratio", ratio}}, "method"));
  for (StepSizes::Module* m :
       {&methods[0].step.agent, &methods[0].step.central, &methods[0].step.objective})
    m->schedule.value = 1e-5;
  RunOptions options;
  options.steps = 100'000'000;
  options.tail = 1;
  const auto team = threads == 1 ? serial_team() : thread_team(threads);
  Run run(problem, std::move(methods), options, *team);
  run.advance(2);
  const std::clock_t start = std::clock();  // of all threads
  for (auto _ : state) run.advance(run.step() + 1);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC /
                         static_cast<double>(state.iterations());
  state.counters["peak_MB"] = peak();
  if (const double e = exponent(ratio + std::to_string(threads), static_cast<double>(n), seconds);
      !std::isnan(e))
    state.counters["exponent"] = e;
}

void LinearRound(benchmark::State& state) { rounds(state, "linear"); }
void ExactRound(benchmark::State& state) { rounds(state, "exact"); }

BENCHMARK(LinearRound)
    ->ArgNames({"agents", "threads"})
    ->ArgsProduct({{1000, 10000, 100000}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(ExactRound)
    ->ArgNames({"agents", "threads"})
    ->ArgsProduct({{1000, 4000}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace affpcl
