// Processes that an MPI launcher started. In a library of its own (CMake: affpcl::mpi), so that
// programs without it need no MPI.
#pragma once

#include <memory>

#include "affpcl/runtime/processes.h"

namespace affpcl {

// Starts MPI; its end stops it. One at a time, from the main thread, which makes all calls.
std::unique_ptr<Processes> mpi_processes();

int mpi_processes_here();  // of them, those on this machine

void mpi_abort(int code);  // ends all processes of the job, this one too

}  // namespace affpcl
