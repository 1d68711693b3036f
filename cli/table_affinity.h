// What a person sees of a pilot: scores, who should gain, who looks alike.
#pragma once

#include "affpcl/affinity/table_affinity.h"

namespace affpcl::cli {

void print_pilot(const PilotResult& result);

}  // namespace affpcl::cli
