// The ranks that an MPI launcher started. A library of its own (CMake: affpcl::mpi), so that other
// programs need no MPI.
#pragma once

#include <memory>

#include "affpcl/runtime/processes.h"

namespace affpcl {

// Starts MPI; its destructor stops MPI. At most one exists at a time. The main thread makes all
// calls.
std::unique_ptr<Processes> mpi_processes();

int mpi_processes_here();  // ranks on this machine

void mpi_abort(int code);  // ends all ranks of the job

}  // namespace affpcl
