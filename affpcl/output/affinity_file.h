// What a pilot found, as files.
#pragma once

#include <string>

#include "affpcl/affinity/table_affinity.h"
#include "affpcl/table/model.h"

namespace affpcl {

struct PilotSource {
  double share = 0;
  std::uint64_t seed = 1;
  std::string command;
};

std::string pilot_summary_json(const PilotResult& result, const PilotSource& source);
std::string pilot_agents_csv(const PilotResult& result);  // a line per agent
std::string pilot_matrix_csv(const PilotResult& result);  // distances, in the order of likeness

// How the forecast in the result folder of such a pilot came out in a scored fit of the same agents, in
// words.
std::string forecast_note(const std::string& folder, const FitResult& fit);

}  // namespace affpcl
