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
#include "affpcl/base/utf8.h"
#include "affpcl/math/kernels.h"
#include "affpcl/runtime/collectives.h"
#include "cli/verbs.h"
#ifdef AFFPCL_MPI
#include "affpcl/runtime/mpi/mpi.h"
#endif

namespace affpcl::cli {
namespace {

std::unique_ptr<Processes> g_joined;  // null: one process

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

#ifdef AFFPCL_MPI
// All ranks use the least of the instruction sets that they have.
void agree_on_instruction_set(Processes& all) {
  const std::vector<std::string> known = available_instruction_sets();  // the best first
  const std::string own = instruction_set();
  std::vector<std::string> agreed = {own};
  std::size_t least = 0;
  int rank = 0;
  for (const std::vector<std::string>& theirs : all_gather(all, {own})) {
    const auto at = std::find(known.begin(), known.end(), theirs[0]);
    if (all.first() && at == known.end())
      throw BadInput(fmt::format(
          "rank {} uses the instruction set {}, which rank 0 ({}) does not have: one job needs one",
          rank, theirs[0], own));
    least = std::max(least, static_cast<std::size_t>(at - known.begin()));
    ++rank;
  }
  if (all.first()) agreed = {known[least]};
  broadcast(all, agreed);
  if (agreed[0] == own) return;
  if (std::find(known.begin(), known.end(), agreed[0]) == known.end())
    throw BadInput(fmt::format(
        "the instruction set {}, which all ranks would have to use, is not available on rank {}",
        agreed[0], all.rank()));
  use_instruction_set(agreed[0]);
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
    fmt::print(stderr, "affpcl: note: {} runs on one rank: rank 0 of {} works alone\n", what,
               l.count);
  return l.rank == 0;
}

int default_threads() {
#ifdef AFFPCL_MPI
  if (!g_joined) return 0;
  const int mine = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int here = mpi_processes_here();
  // A launcher that binds processes to cores has divided the cores already.
  return mine < sysconf(_SC_NPROCESSORS_ONLN) ? mine : std::max(1, mine / here);
#else
  return 0;
#endif
}

int fail(const std::string& message, int code) {
  const Launched l = launched();
  const std::string what = printable(message);
  if (l.count > 1 && l.rank > 0) {
    // Where all ranks fail, rank 0 prints why and its end stops this rank before it prints too.
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
