#include "cli/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "affpcl/base/error.h"
#include "affpcl/math/kernels.h"
#include "cli/verbs.h"
#ifdef AFFPCL_MPI
#include "affpcl/runtime/mpi/mpi.h"
#endif

namespace affpcl::cli {
namespace {

std::unique_ptr<Processes> g_joined;  // null: this process alone

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

#ifdef AFFPCL_MPI
std::string to_text(std::span<const double> letters) {
  return std::string(letters.begin(), letters.end());
}

// The least of the instruction sets that the processes use, for all of them.
void agree_on_instruction_set(Processes& all) {
  const std::vector<std::string> known = available_instruction_sets();  // the best first
  const std::string own = instruction_set();
  std::size_t least = 0;
  int rank = 0;
  all.to_first(std::vector<double>(own.begin(), own.end()), [&](std::span<const double> letters) {
    const std::string theirs = to_text(letters);
    const auto at = std::find(known.begin(), known.end(), theirs);
    if (at == known.end())
      throw BadInput(fmt::format(
          "rank {} uses the instruction set {}, which rank 0 ({}) does not have: one job needs one",
          rank, theirs, own));
    least = std::max(least, static_cast<std::size_t>(at - known.begin()));
    ++rank;
  });
  std::vector<double> letters(32, ' ');
  if (all.first()) std::copy(known[least].begin(), known[least].end(), letters.begin());
  all.spread(letters);
  std::string agreed = to_text(letters);
  agreed.erase(agreed.find(' '));
  if (agreed == own) return;
  if (std::find(known.begin(), known.end(), agreed) == known.end())
    throw BadInput(
        fmt::format("the instruction set {} that all ranks have to use is not here", agreed));
  use_instruction_set(agreed);
}
#endif

}  // namespace

Launched launched() {
  for (const auto& [rank, count] :
       {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}})
    if (std::getenv(rank) != nullptr) return {number_in(rank, 0), number_in(count, 1), true};
  if (std::getenv("PMIX_RANK") != nullptr)  // srun --mpi=pmix
    return {number_in("PMIX_RANK", 0), number_in("SLURM_NTASKS", 1), true};
  return {};
}

Processes& processes(bool anyway) {
  if (g_joined) return *g_joined;
  const Launched l = launched();
  if (!anyway && !l.by_launcher) return this_process();
#ifdef AFFPCL_MPI
  g_joined = mpi_processes();
  agree_on_instruction_set(*g_joined);
  return *g_joined;
#else
  if (anyway || l.count > 1)
    throw BadInput(
        "this affpcl was built without MPI (Debian: libopenmpi-dev, openmpi-bin; then build "
        "again)");
  return this_process();
#endif
}

bool first_alone(const std::string& what) {
  const Launched l = launched();
  if (l.rank == 0 && l.count > 1)
    fmt::print(stderr, "affpcl: note: {} is not shared: the first of {} processes works alone\n",
               what, l.count);
  return l.rank == 0;
}

int default_threads() {
#ifdef AFFPCL_MPI
  if (!g_joined) return 0;
  const int mine = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int here = mpi_processes_here();
  // A launcher that binds processes to cores has shared them out already.
  return mine < sysconf(_SC_NPROCESSORS_ONLN) ? mine : std::max(1, mine / here);
#else
  return 0;
#endif
}

int fail(const std::string& what, int code) {
  const Launched l = launched();
  if (l.count > 1 && l.rank > 0) {
    // What is wrong for all is said by the first, whose end is everybody's.
    std::signal(SIGTERM, SIG_DFL);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    fmt::print(stderr, "affpcl: rank {}: {}\n", l.rank, what);
  } else {
    fmt::print(stderr, "affpcl: {}\n", what);
  }
  std::fflush(stderr);
#ifdef AFFPCL_MPI
  if (g_joined && g_joined->count() > 1) mpi_abort(code);
#endif
  return code;
}

}  // namespace affpcl::cli
