// The processes of this job: those that an MPI launcher started, or this one.
#pragma once

#include <string>

#include "affpcl/runtime/processes.h"

namespace affpcl::cli {

// Whether a launcher such as mpirun started this process, and as which of how many.
struct Launched {
  int rank = 0, count = 1;
  bool by_launcher = false;
};
Launched launched();

// Joins the others on the first call, if there are any; `anyway` asks for MPI without a launcher.
// All of them then use one instruction set. BadInput where this build has no MPI.
Processes& processes(bool anyway = false);

// For what processes do not share: whether this one is the first, which then says that it works
// alone.
bool first_alone(const std::string& what);

// Threads of this process where nobody says: the cores it has, shared with the others on this
// machine. 0: all there are.
int default_threads();

// Says what went wrong, once for all processes, and ends all of them where there are others.
// Returns the exit code.
int fail(const std::string& what, int code);

}  // namespace affpcl::cli
