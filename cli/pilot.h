// What a person sees of a pilot: scores, who should gain, who looks alike.
#pragma once

#include "affpcl/fit/pilot.h"

namespace affpcl::cli {

void print_pilot(const PilotResult& result);

}  // namespace affpcl::cli
