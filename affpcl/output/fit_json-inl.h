// What the JSON files of this layer have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "affpcl/base/json.h"
#include "affpcl/table/frame.h"
#include "affpcl/table/privacy.h"

namespace affpcl {

const char* to_text(Missing missing);

// A list of numbers or words on one line, everything else indented; ends with a new line.
std::string pretty(const Json& json);

// What was read: files, target, agents, blanks, task.
Json spec_json(const Encoding& encoding, const std::vector<std::string>& files);

// What was promised for every row, and the noise that it took.
Json privacy_json(const PrivacyTerms& terms);

// Where a summary comes from.
Json manifest(Json spec, std::uint64_t seed, const std::string& command, int threads,
              double seconds, bool complete);

}  // namespace affpcl
