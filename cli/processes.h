// The processes of this job: the ranks that an MPI launcher started, or this process alone.
#pragma once

#include <string>

#include "affpcl/runtime/processes.h"

namespace affpcl::cli {

// Whether a launcher such as mpirun started this process, with its rank and the number of ranks.
struct Launched {
  int rank = 0, count = 1;
  bool by_launcher = false;
};
Launched launched();

// Starts MPI on the first call where a launcher started this process; `anyway` starts it without a
// launcher. All ranks then use one instruction set. BadInput where this build has no MPI.
Processes& processes(bool anyway = false);

// For work that ranks do not divide: true on rank 0, which then prints a note that it works alone.
bool first_alone(const std::string& what);

// Threads of this rank by default: its part of the cores of this machine. 0: all cores.
int default_threads();

// Prints what went wrong, once for all ranks, and ends all of them. Returns the exit code.
int fail(const std::string& what, int code);

}  // namespace affpcl::cli
