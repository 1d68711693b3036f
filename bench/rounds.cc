#include "bench/rounds.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "affpcl/math/statistics.h"
#include "affpcl/method/method.h"
#include "affpcl/problem/gaussian.h"
#include "affpcl/runtime/run.h"
#include "bench/stopwatch.h"

namespace affpcl::bench {
namespace {

constexpr double kPiece = 0.002;  // seconds that are timed at once, at least
constexpr int kFewest = 3;        // pieces
// Rounds of a piece, at least. The first and the last of a piece cost more, for a round that is
// followed by another begins it in the same sweep and leaves most errors out, as all but two of a
// run do.
constexpr std::int64_t kRounds = 16;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RoundSeconds round_seconds(const RoundCase& c, double seconds) {
  const Gaussian problem({.agents = c.agents, .dim = c.dim}, 1, 0);
  const MethodKind& kind = method_kind("affpcl");
  std::map<std::string, Value> given{{"ratio", c.ratio}};
  if (c.precision != "f64") given["precision"] = c.precision;
  std::vector<RunMethod> methods(1);
  methods[0].name = "affpcl";
  methods[0].method = kind.make(Values(kind.params, given, "method"));
  for (StepSizes::Module* m :
       {&methods[0].step.agent, &methods[0].step.central, &methods[0].step.objective})
    m->schedule.value = 1e-5;
  RunOptions options;
  options.steps = 1'000'000'000;
  options.tail = 1;
  const auto team = thread_team(c.threads);
  Run run(problem, std::move(methods), options, *team);
  run.advance(3);
  const auto clock = [&] { return c.threads == 1 ? processor_seconds() : wall_seconds(); };
  std::vector<double> times;
  std::int64_t rounds = kRounds;
  for (const double begin = wall_seconds();
       wall_seconds() - begin < seconds || static_cast<int>(times.size()) < kFewest;) {
    const double start = clock();
    run.advance(run.step() + rounds);
    const double took = clock() - start;
    if (took < kPiece) {
      rounds *= 2;
    } else {
      times.push_back(took / static_cast<double>(rounds));
    }
  }
  const double least = *std::min_element(times.begin(), times.end());
  return {median(std::move(times)), least};
}

double model_seconds(const RoundCase& c, const Limits& limits) {
  const bool single = c.precision == "f32";
  const double n = static_cast<double>(c.agents), d = c.dim;
  const double P = single ? limits.fma32 : limits.fma64, E = single ? limits.exp32 : limits.exp64;
  return n * n * (4 * d / P + 1 / E) + n * (2 * d * d / limits.fma64 + d / limits.normals);
}

}  // namespace affpcl::bench
