// A study from the text of a spec: AffPCL beside FedAvg and independent learning, at two levels of
// heterogeneity.
//
//   c++ -std=c++20 run_study.cc -o run_study -laffpcl -lfmt -lhwy -lzip && ./run_study
//
// With CMake: find_package(affpcl REQUIRED) and target_link_libraries(... affpcl::affpcl).
#include <affpcl/affpcl.h>

#include <cstdio>

namespace {

constexpr char kSpec[] = R"(
[problem]
kind = "gaussian"
agents = 20
[run]
steps = 60
replicates = 10
[[method]]
kind = "affpcl"
[[method]]
kind = "fedavg"
[[method]]
kind = "independent"
[sweep]
"problem.delta_env+problem.delta_obj" = [0.0, 0.3]
)";

}  // namespace

int main() try {
  const affpcl::Study study = affpcl::read_study(kSpec, "example");
  const affpcl::StudyResult result = affpcl::run_study(study, {.threads = 2});
  bool gained = true;
  for (const affpcl::SettingResult& setting : result.settings) {
    for (const auto& [key, value] : setting.at)
      std::printf("%s = %s\n", key.c_str(), affpcl::to_text(value).c_str());
    for (const affpcl::MethodResult& method : setting.methods)
      std::printf("  %-12s error %.5f, %.3f of independent learning's [%.3f, %.3f]\n",
                  method.name.c_str(), method.mse.mean, method.vs_independent.mean,
                  method.vs_independent.lo, method.vs_independent.hi);
    gained = gained && setting.methods[0].vs_independent.hi < 1;
  }
  return gained ? 0 : 1;
} catch (const affpcl::BadInput& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
