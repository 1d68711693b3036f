// A program of a user's: it sees the installed headers and links the installed library only.
#include <affpcl/study/study.h>
#include <affpcl/version.h>

#include <cstdio>

int main() {
  const affpcl::Study study = affpcl::read_study(R"(
[problem]
kind = "gaussian"
agents = 4
delta_env = 0.0
delta_obj = 0.0
[run]
steps = 20
replicates = 2
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
)",
                                                 "consumer");
  const affpcl::StudyResult result = affpcl::run_study(study, {});
  const double ratio = result.settings.at(0).methods.at(0).vs_independent.mean;
  std::printf("affpcl %s: %.3f of the error of learning alone\n", affpcl::kVersion, ratio);
  return ratio > 0 && ratio < 1 ? 0 : 1;
}
