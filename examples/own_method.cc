// A method (pull_to_mean.h) and a problem (mean_estimation.h) of your own in a study, beside
// independent learning.
//
//   c++ -std=c++20 own_method.cc pull_to_mean.cc mean_estimation.cc -o own_method
//       -laffpcl -lfmt -lhwy -lzip && ./own_method
//
// With CMake: find_package(affpcl REQUIRED) and target_link_libraries(... affpcl::affpcl).
#include <affpcl/affpcl.h>

#include <cstdio>

#include "mean_estimation.h"
#include "pull_to_mean.h"

namespace {

constexpr char kSpec[] = R"(
[problem]
kind = "mean_estimation"
spread = 0.1
[run]
steps = 200
step_size = 0.05
[[method]]
kind = "pull_to_mean"
share = 0.3
period = 2                       # local steps between two rounds
[[method]]
kind = "independent"
)";

}  // namespace

int main() try {
  using namespace affpcl::examples;
  affpcl::register_method<PullToMean>("pull_to_mean", "own steps, then towards the mean");
  affpcl::register_problem<MeanEstimation>("mean_estimation", "each agent's own mean");
  const affpcl::StudyResult result = affpcl::run_study(affpcl::read_study(kSpec, "example"));
  const affpcl::Estimate& ratio = result.settings.at(0).methods.at(0).vs_independent;
  std::printf("pull_to_mean: %.3f [%.3f, %.3f] of the error of independent learning\n", ratio.mean,
              ratio.lo, ratio.hi);
  return ratio.hi < 1 ? 0 : 1;
} catch (const affpcl::BadInput& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
