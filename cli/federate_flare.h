// A federation over NVIDIA FLARE: affpcl.flare of the Python package runs it in a process beside this
// one, which reads what it says.
#pragma once

#include "cli/federate_local.h"

namespace affpcl::cli {

Federated federate_flare(const JobFile& job, const FederateOptions& options);

}  // namespace affpcl::cli
