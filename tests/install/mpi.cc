// A program of a user's whose processes share a study: it links affpcl::mpi and includes nothing of
// MPI's.
#include <affpcl/runtime/mpi/mpi.h>
#include <affpcl/study/study.h>

#include <cstdio>
#include <memory>

int main() {
  const std::unique_ptr<affpcl::Processes> processes = affpcl::mpi_processes();
  const affpcl::Study study = affpcl::read_study(R"(
[problem]
kind = "gaussian"
agents = 4
[run]
steps = 20
replicates = 4
[[method]]
kind = "affpcl"
)",
                                                 "consumer");
  affpcl::StudyOptions options;
  options.processes = processes.get();
  const affpcl::StudyResult result = affpcl::run_study(study, options);
  if (!processes->first()) return 0;
  const auto replicates = result.settings.at(0).replicates;
  std::printf("affpcl::mpi: %d processes, %d replicates\n", result.ranks,
              static_cast<int>(replicates));
  return result.ranks == 2 && replicates == 4 ? 0 : 1;
}
